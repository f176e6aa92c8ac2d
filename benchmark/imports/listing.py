"""Read a file that lists runs (TOML): each names its arrays, or one file with all of them."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.imports.fields import Arrays, ImportedRun, field_name
from benchmark.imports.find import Reading, find_files, read_seed, read_vector, runs_of_file
from benchmark.imports.npz import file_sha256, read_npy

OF_LIST = ("task", "title", "paired", "reference", "run")
OF_RUN = ("method", "seed", "scores", "file")


@dataclass(frozen=True)
class Listing:
    """The runs that a file lists, and what it says of all of them."""

    runs: tuple[ImportedRun, ...]
    task: str = ""
    title: str = ""
    paired: bool = False
    reference: str = ""


def read_listing(path: Path, how: Reading) -> Listing:
    """Return what a file lists. Paths in it are seen from its folder."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"'{path}' is no TOML file: {error}") from None
    runs = content.get("run")
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise UserError(f"'{path}': expected runs, each as [[run]] with method, seed and its files")
    heading = {key: content[key] for key in ("task", "title", "paired", "reference") if key in content}
    for key, value in heading.items():
        kind = bool if key == "paired" else str
        if not isinstance(value, kind):
            raise UserError(
                f"'{path}': {key}: expected {'true or false' if kind is bool else 'text'}, got {shown(value)}"
            )
    shared = dict(flattened({key: value for key, value in content.items() if key not in OF_LIST}, path))
    found = [run for entry in runs for run in listed_runs(entry, shared, path, how)]
    return Listing(tuple(found), **heading)


def listed_runs(
    entry: Mapping[str, Any], shared: Mapping[str, Path], path: Path, how: Reading
) -> Iterator[ImportedRun]:
    """Yield the runs that an entry means: one, or those of its file."""
    told = {key: entry[key] for key in OF_RUN if key in entry}
    fields = {**shared, **dict(flattened({key: value for key, value in entry.items() if key not in OF_RUN}, path))}
    renamed: dict[str, Any] = {}
    if "method" in told:
        renamed["method"] = str(told["method"])
    if "seed" in told:
        renamed["seed"] = read_seed(told["seed"], str(path))
    if "scores" in told:
        if not isinstance(told["scores"], list):
            raise UserError(f"'{path}': scores: expected a list of names, got {shown(told['scores'])}")
        renamed["scores"] = tuple(map(str, told["scores"]))
    if "file" in told:
        for file in find_files([str(path.parent / str(told["file"]))]):
            for run in runs_of_file(file, how):
                yield replace(run, load=joined(run, fields), **renamed)
        return
    if not fields or "method" not in told:
        raise UserError(f"'{path}': a [[run]] needs `method`, and its arrays (e.g. logits = \"vit-0.npy\") or a `file`")
    name = " and ".join(sorted({each.name for each in fields.values()})[:2])
    files = tuple(fields.values())
    yield ImportedRun(
        renamed["method"],
        renamed.get("seed", 0),
        name,
        lambda: read_fields(fields),
        lambda: file_sha256(*files),
        renamed.get("scores", ()),
    )


def joined(run: ImportedRun, fields: Mapping[str, Path]) -> Any:
    """Return a way to load the arrays of a run with those of further files, which do not replace its own."""
    return lambda: {**read_fields(fields), **run.load()}


def read_fields(fields: Mapping[str, Path]) -> Arrays:
    return {name: read_npy(path) if path.suffix == ".npy" else read_vector(path) for name, path in fields.items()}


def flattened(table: Mapping[str, Any], path: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the fields of a table of tables with the file of each: `val.logits`, `confidence.mc`."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flattened(value, path, f"{name}.")
        elif isinstance(value, str):
            file = path.parent / value
            if not file.is_file():
                raise UserError(f"'{path}': {name}: no file '{file}'")
            yield field_name(name, f"'{path}'"), file
        elif prefix or key not in (*OF_LIST, *OF_RUN):
            raise (
                unknown_name(name, [*OF_LIST, *OF_RUN], f"key of '{path}':")
                if not prefix
                else UserError(f"'{path}': {name}: expected the name of a file, got {shown(value)}")
            )
