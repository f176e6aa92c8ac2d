"""Read a file that lists runs (TOML): each names its arrays, or one file with all of them."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.base.rows import READERS, table_suffix
from benchmark.imports.fields import SET, TOLD_OF_SETS, Arrays, ImportedRun, field_name, known_fields
from benchmark.imports.find import Reading, find_files, read_array_file, read_seed, runs_of_file
from benchmark.imports.npz import Array, file_sha256

OF_LIST = ("task", "title", "paired", "reference", "run")
OF_RUN = ("method", "seed", "scores", "file")
Fields = Mapping[str, Path | Array]
"""What a list says of fields: a file for each, or a value for all samples."""


@dataclass(frozen=True)
class Listing:
    """The runs that a file lists, and what it says of all of them."""

    runs: tuple[ImportedRun, ...]
    task: str = ""
    title: str = ""
    paired: bool | None = None
    reference: str = ""


def runs_of_files(names: Sequence[str], how: Reading) -> Listing:
    """Return the runs that some files have: of a list (TOML) alone, or of files that are runs."""
    files = find_files(names)
    if not files:
        raise UserError("expected files with predictions, e.g. score vit-*.npz; or try it with: score --example DIR")
    lists = [path for path in files if path.suffix == ".toml"]
    check_used(how, files, bool(lists))
    if lists and len(files) > 1:
        raise UserError(f"'{lists[0]}' lists all runs of a command; name it alone, or list the others in it")
    if lists:
        return read_listing(lists[0], how)
    return Listing(tuple(run for path in files for run in runs_of_file(path, how)))


def check_used(how: Reading, files: Sequence[Path], is_list: bool) -> None:
    """Refuse what is said of files that are not there."""
    if how.given and not is_list and not any(path.suffix == ".npy" for path in files):
        raise UserError(f"--given {how.given}: it is for npy files, and none is named; leave it out")
    if how.columns and not is_list and not any(table_suffix(path) in READERS for path in files):
        raise UserError("--columns: it is for tables (.csv, .parquet …), and none is named; leave it out")


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
    shared = fields_of(content, path, OF_LIST, OF_RUN, "it belongs into a [[run]]")
    found = [run for entry in runs for run in listed_runs(entry, shared, path, how)]
    return Listing(tuple(found), **heading)


def listed_runs(entry: Mapping[str, Any], shared: Fields, path: Path, how: Reading) -> Iterator[ImportedRun]:
    """Yield the runs that an entry means: one, or those of its file."""
    own = fields_of(entry, path, OF_RUN, OF_LIST, "it belongs above all runs")
    fields = {**shared, **own}
    told = told_of_run(entry, path)
    files = tuple(file for file in fields.values() if isinstance(file, Path))
    if "file" in entry:
        for file in find_files([str(path.parent / str(entry["file"]))]):
            if file.suffix == ".toml":
                raise UserError(f"'{path}': file: expected predictions, got the list '{file}'")
            for run in runs_of_file(file, how):
                joined = partial(load_all, shared, run, own)
                yield replace(run, load=joined, sha256=partial(file_sha256, file, *files), **told)
        return
    if not fields or "method" not in told:
        raise UserError(f"'{path}': a [[run]] needs `method`, and its arrays (e.g. logits = \"vit-0.npy\") or a `file`")
    name = " and ".join(sorted({file.name for file in files})[:2])
    load, sha256 = partial(read_fields, fields), partial(file_sha256, *files)
    yield replace(ImportedRun("", 0, name, load, sha256), **told)


def told_of_run(entry: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what an entry says of its run, beside its files: method, seed and scores."""
    told: dict[str, Any] = {}
    if "method" in entry:
        if not isinstance(entry["method"], str):
            raise UserError(f"'{path}': method: expected text, got {shown(entry['method'])}")
        told["method"] = entry["method"]
    if "seed" in entry:
        told["seed"] = read_seed(entry["seed"], str(path))
    if "scores" in entry:
        if not isinstance(entry["scores"], list):
            raise UserError(f"'{path}': scores: expected a list of names, got {shown(entry['scores'])}")
        told["scores"] = tuple(map(str, entry["scores"]))
    return told


def fields_of(
    table: Mapping[str, Any], path: Path, told: Sequence[str], elsewhere: Sequence[str], hint: str
) -> dict[str, Path | Array]:
    """Return the fields that a part of the list has, with their files; `told` are its other keys."""
    for key in table:
        if key in elsewhere and key not in told:
            raise UserError(f"'{path}': {key}: {hint}")
    return dict(flattened({key: value for key, value in table.items() if key not in told}, path))


def load_all(shared: Fields, run: ImportedRun, own: Fields) -> Arrays:
    """Return the arrays of a file: those of its entry come first, those for all runs last."""
    return {**read_fields(shared), **known_fields(run.load(), run.file), **read_fields(own)}


def read_fields(fields: Fields) -> Arrays:
    return {name: read_array_file(file) if isinstance(file, Path) else file for name, file in fields.items()}


def flattened(table: Mapping[str, Any], path: Path, prefix: str = "") -> Iterator[tuple[str, Path | Array]]:
    """Yield the fields of a table of tables with the file of each: `val.logits`, `confidence.mc`."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flattened(value, path, f"{name}.")
        elif prefix.startswith(f"{SET}.") and key in TOLD_OF_SETS:
            yield field_name(name, f"'{path}'"), np.asarray(value)
        elif isinstance(value, str):
            file = path.parent / value
            if not file.is_file():
                raise UserError(f"'{path}': {name}: no file '{file}'")
            yield field_name(name, f"'{path}'"), file
        elif prefix:
            raise UserError(f"'{path}': {name}: expected the name of a file, got {shown(value)}")
        else:
            raise unknown_name(name, [*OF_LIST, *OF_RUN], f"key of '{path}':")
