"""Find the runs that a user names: files whose names say method and seed, tables with many runs, or a list of them."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import SEED, read_number
from benchmark.base.rows import READERS, read_frame, table_suffix
from benchmark.imports.fields import Arrays, ImportedRun
from benchmark.imports.frames import runs_in, text_columns
from benchmark.imports.npz import file_sha256, read_npy, read_npz

KNOWN = (".npz", ".npy", ".toml", *READERS)
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
TOLD = ("method", "seed", "scores")
"""Arrays of an npz that say what the others are: text or a number."""


@dataclass(frozen=True)
class Reading:
    """How the files that a user names are read."""

    labels: Path | None = None
    """True classes, for files that have none."""
    given: str | None = None
    """What the array of an npy file is; None: logits."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column, or pattern of columns, of each field of a table."""


def find_files(names: Sequence[str]) -> list[Path]:
    """Return the files that names and patterns mean, each once. Refuse what is not there, or cannot be read."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        paths = [path] if path.exists() else sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not paths:
            raise UserError(f"no file '{name}'; expected predictions as {', '.join(KNOWN)}")
        found |= dict.fromkeys(paths)
    for path in found:
        if path.suffix in PICKLES:
            raise UserError(
                f"'{path}' is a pickle, which may execute anything and is never loaded; save arrays with numpy.savez"
            )
        if path.is_dir():
            raise UserError(f"'{path}' is a folder; name the files in it, e.g. '{path}/*.npz'")
        if table_suffix(path) not in KNOWN:
            raise UserError(f"'{path}': expected {', '.join(KNOWN)}; what it is must be seen from its name")
    return list(found)


def runs_of_file(path: Path, how: Reading) -> list[ImportedRun]:
    """Return the runs in a file."""
    name, seed = name_and_seed(path)
    if path.suffix == ".npz":
        return [npz_run(path, how)]
    if path.suffix == ".npy":
        load = with_labels(lambda: {how.given or "logits": read_npy(path)}, how.labels)
        return [ImportedRun(name, seed, path.name, load, lambda: file_sha256(path))]
    return list(
        table_runs(
            read_frame(path, partial(text_columns, how.columns)),
            how,
            path.name,
            (name, seed),
            lambda: file_sha256(path),
        )
    )


def table_runs(
    frame: Any, how: Reading, where: str, default: tuple[str, int], sha256: Callable[[], str] | None = None
) -> Iterator[ImportedRun]:
    """Yield the runs of a table. They are in memory: a file that is no array cannot be read in parts."""
    for method, seed, arrays in runs_in(frame, how.columns, where, default):
        line = f"{where} ({method}, seed {seed})"
        load = with_labels(partial(dict, arrays), how.labels)
        yield ImportedRun(method, read_seed(seed, where), line, load, sha256 or partial(arrays_sha256, arrays))


def npz_run(path: Path, how: Reading) -> ImportedRun:
    """Return the run of an npz file; what the file says of itself counts more than its name."""
    name, seed = name_and_seed(path)
    told = read_npz(path, TOLD)
    if "method" in told:
        name = told_text(told["method"], "method", path)
    if "seed" in told:
        seed = read_seed(told["seed"], path.name)
    scores = tuple(str(each) for each in np.atleast_1d(told["scores"])) if "scores" in told else ()

    def load() -> Arrays:
        return {key: array for key, array in read_npz(path).items() if key not in TOLD}

    return ImportedRun(name, seed, path.name, with_labels(load, how.labels), lambda: file_sha256(path), scores)


def told_text(array: NDArray[Any], name: str, path: Path) -> str:
    if array.size != 1 or array.dtype.kind != "U":
        raise UserError(f"'{path}': {name}: expected one text, got the shape {array.shape} of type {array.dtype}")
    return str(array.item())


def name_and_seed(path: Path) -> tuple[str, int]:
    """Return method and seed that the name of a file says: NAME-SEED; a name without number has seed 0."""
    stem = path.name.removesuffix("".join(path.suffixes[path.suffixes.index(table_suffix(path)) :]))
    match = re.fullmatch(r"(.+)-(\d{1,10})", stem)
    return (match[1], int(match[2])) if match else (stem, 0)


def read_seed(value: Any, where: str) -> int:
    try:
        number = value.item() if getattr(value, "size", 0) == 1 and hasattr(value, "item") else value
        return int(read_number(number.strip() if isinstance(number, str) else number, int, SEED))
    except ValueError as error:
        raise UserError(f"{where}: seed: {error}") from None


def with_labels(load: Callable[[], Arrays], labels: Path | None) -> Callable[[], Arrays]:
    """Return a way to load arrays, with the labels of another file where they have none."""

    def load_both() -> Arrays:
        arrays = load()
        own = {"labels", "label", "label_ids"} & set(arrays)
        return arrays if labels is None or own else {"labels": read_array_file(labels), **arrays}

    return load_both


def read_array_file(path: Path) -> NDArray[Any]:
    """Return the one array of a file: npy, or a number per line."""
    if path.suffix == ".npy":
        return read_npy(path)
    if path.suffix not in (".txt", ".csv"):
        raise UserError(f"'{path}': expected .npy, or .txt with a number per line")
    try:
        return np.loadtxt(path, ndmin=1)
    except ValueError as error:
        raise UserError(f"'{path}': expected a number per line ({error})") from None


def arrays_sha256(arrays: Arrays) -> str:
    """Return the SHA-256 of arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
