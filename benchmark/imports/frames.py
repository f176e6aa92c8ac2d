"""Read runs from tables with a line per sample: CSV, JSON Lines, Parquet, Feather and pandas frames.

Which column is which field is said by a mapping, e.g. {"labels": "y", "probabilities": "p_*"}. Without it, a column is
the field of its own name, and `logits_0`, `logits_1` … are the columns of `logits`.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.imports.fields import ALIASES, NAMED, SET, SINGLE, TABLES, TEST, TRAIN, VAL, WIDE, Arrays, field_name

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[Any]
KEYS = ("method", "seed", "part")
"""Columns that say which run a line belongs to, and whether it is a test sample (test), val, train or of a set."""
READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".parquet": "read_parquet",
    ".feather": "read_feather",
}
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
WITH_ARROW = ("read_parquet", "read_feather")
INSTALL = 'pyarrow is needed to read it; install it with: pip install "selbench[parquet]", or: pip install pyarrow'


def table_suffix(path: Path) -> str:
    """Return the suffix that says what a file is: `.csv` of `runs.csv.gz`."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in PACKED]
    return suffixes[-1] if suffixes else ""


def read_frame(path: Path) -> "DataFrame":
    """Return the table in a file."""
    import pandas

    reader = READERS[table_suffix(path)]
    options: dict[str, Any] = {"lines": True} if reader == "read_json" else {}
    if table_suffix(path) == ".tsv":
        options["sep"] = "\t"
    if reader == "read_csv":
        options["keep_default_na"] = True
    try:
        return getattr(pandas, reader)(path, **options)
    except ImportError as error:
        if reader in WITH_ARROW:
            raise UserError(f"'{path}': {INSTALL}") from None
        raise UserError(f"'{path}' cannot be read ({brief(error)})") from None
    except (ValueError, OSError, EOFError, KeyError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UserError(f"'{path}' is no {table_suffix(path)[1:]} file that can be read ({brief(error)})") from None


def chosen_columns(asked: Mapping[str, str], names: Sequence[str], where: str) -> dict[str, str]:
    """Return the column, or the pattern of columns, of each field: as asked, else by the names of the columns."""
    found = {}
    for name, pattern in asked.items():
        field = name if name in KEYS else field_name(name, where)
        if not fnmatch.filter(names, pattern):
            raise unknown_name(pattern, names, f"column of {where}:")
        found[field] = pattern
    taken = set(found.values())
    for name in names:
        field = ALIASES.get(name, name)
        kind, dot, _ = field.partition(".")
        stem = re.sub(r"_\d+$", "", field)
        if name not in taken and (field in (*KEYS, *SINGLE) or (dot and kind in NAMED)):
            found.setdefault(field, name)
        elif stem != field and stem in WIDE:
            found.setdefault(stem, f"{stem}_*")
    return found


def runs_in(
    frame: "DataFrame", asked: Mapping[str, str], where: str, default: tuple[str, Any]
) -> Iterator[tuple[str, Any, Arrays]]:
    """Yield method, seed and arrays of each run of a table; `default` are those of a table without such columns."""
    frame = frame.rename(columns=str)
    if not len(frame):
        raise UserError(f"{where} has no lines; expected one for each sample")
    columns = chosen_columns(asked, list(frame.columns), where)
    classes = class_names(frame, columns)
    keys = [key for key in ("method", "seed") if key in columns]
    groups = frame.groupby([columns[key] for key in keys], sort=False, dropna=False) if keys else [((), frame)]
    for values, lines in groups:
        known = dict(zip(("method", "seed"), default, strict=True)) | dict(zip(keys, values, strict=True))
        yield str(known["method"]), known["seed"], arrays_of(lines, columns, classes, where)


def arrays_of(lines: "DataFrame", columns: Mapping[str, str], classes: Sequence[str], where: str) -> Arrays:
    """Return the arrays of one run, by part and field. A field that a part has no value of is left out there."""
    arrays: dict[str, Array] = {}
    for part, own in lines.groupby(columns["part"], sort=False) if "part" in columns else [("test", lines)]:
        for field, pattern in columns.items():
            names = matching(pattern, own.columns)
            if field in KEYS or own[names].isna().all(axis=None):
                continue
            values = wide_values(own, field, names, where) if field in WIDE else column_values(own[names[0]])
            if field in ("labels", "predicted") and values.dtype.kind == "U":
                values = class_numbers(values, classes, field, where)
            arrays[f"{part_prefix(str(part))}{field}"] = values
    return arrays


def part_prefix(part: str) -> str:
    known = {"test": TEST, VAL: f"{VAL}.", "validation": f"{VAL}.", TRAIN: f"{TRAIN}."}
    return known.get(part, f"{SET}.{part}.")


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the columns of a pattern: sorted by what its * stands for if that is a number, else as they stand."""
    found = [str(name) for name in names if fnmatch.fnmatchcase(str(name), pattern)]
    parts = star_parts(pattern, found)
    return sorted(found, key=lambda name: int(parts[found.index(name)])) if all(map(str.isdecimal, parts)) else found


def star_parts(pattern: str, names: Sequence[str]) -> list[str]:
    """Return what the * of a pattern stands for in each name."""
    before, _, after = pattern.partition("*")
    return [name.removeprefix(before).removesuffix(after) for name in names]


def wide_values(lines: "DataFrame", field: str, names: Sequence[str], where: str) -> Array:
    """Return a field with several columns: one for each, or one whose values are lists."""
    if len(names) > 1:
        return np.asarray(lines[names].to_numpy())
    column = list(lines[names[0]])
    if not all(hasattr(value, "__len__") and not isinstance(value, str) for value in column):
        raise UserError(
            f"{where}: {field}: expected a column for each class, e.g. {field}={names[0]}*, or lists in one column, "
            f"got {shown(column[0])}"
        )
    lengths = {len(value) for value in column}
    if len(lengths) > 1:
        raise UserError(f"{where}: {field}: expected lists of one length, got {min(lengths)} to {max(lengths)} values")
    return np.array([list(value) for value in column])


def column_values(column: Any) -> Array:
    """Return one value per line: numbers as they are, anything else as text."""
    values = column.to_numpy()
    if values.dtype != object and values.dtype.kind in "biuf":
        return np.asarray(values)
    numbers = [value for value in values if isinstance(value, (int, float, np.number)) or value is None]
    return np.asarray(values, np.float64) if len(numbers) == len(values) else np.asarray([str(each) for each in values])


def class_names(frame: "DataFrame", columns: Mapping[str, str]) -> list[str]:
    """Return the classes that text in a table means, in their order: those of the columns, else sorted by name."""
    for field in TABLES:
        parts = star_parts(columns[field], matching(columns[field], frame.columns)) if field in columns else []
        if len(parts) > 1 and not all(map(str.isdecimal, parts)):
            return parts
    texts = [frame[columns[field]].astype(str) for field in ("labels", "predicted") if field in columns]
    return sorted({value for column in texts for value in column}) if "predicted" in columns else []


def class_numbers(values: Array, classes: Sequence[str], field: str, where: str) -> Array:
    """Return the classes of text as numbers."""
    number = {name: index for index, name in enumerate(classes)}
    unknown = [str(value) for value in values if str(value) not in number]
    if unknown:
        known = f"one of {', '.join(map(str, classes[:8]))}" if classes else "classes as whole numbers from 0"
        raise UserError(f"{where}: {field}: expected {known}, got {shown(unknown[0])}")
    return np.array([number[str(value)] for value in values])
