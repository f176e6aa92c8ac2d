"""Read runs from tables with a line per sample: CSV, JSON Lines, Parquet, Feather and pandas frames.

Which column is which field is said by a mapping, e.g. {"labels": "y", "probabilities": "p_*"}. Without it, a column is
the field of its own name, and `logits_0`, `logits_1` … are the columns of `logits`.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.base.units import counted
from benchmark.imports.fields import (
    ALIASES,
    NAMED,
    OF_SETS,
    SET,
    SINGLE,
    TABLES,
    TEST,
    TRAIN,
    VAL,
    WIDE,
    Arrays,
    field_name,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[Any]
KEYS = ("method", "seed", "part")
"""Columns that say which run a line belongs to, and whether it is a test sample (test), val, train or of a set."""
TEXT = ("ids", "method", "group")
"""Fields whose numbers may be names: 007 is not 7."""


def text_columns(asked: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns whose numbers may be names."""
    said = {column: field for field, column in asked.items()}
    fields = {name: said.get(name, name) for name in names}
    return [name for name, field in fields.items() if ALIASES.get(field, field).partition(".")[0] in TEXT]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are which field."""

    names: Mapping[str, Sequence[str]]
    """The columns of each field; one, but for fields such as logits."""
    classes: Sequence[str]
    """What text among the labels means, in the order of the classes."""

    def one(self, field: str) -> str:
        return self.names[field][0]


def find_columns(asked: Mapping[str, str], frame: "DataFrame", where: str) -> Columns:
    """Return the columns of each field: as asked, else by the names of the columns."""
    known = list(frame.columns)
    found: dict[str, list[str]] = {}
    classes: list[str] = []
    for name, pattern in asked.items():
        field = name if name in (*KEYS, *OF_SETS) else field_name(name, where)
        found[field], parts = matching(str(pattern), known)
        check_matches(field, str(pattern), found[field], parts, known, where)
        classes = parts if field in TABLES and not all(map(str.isdecimal, parts)) else classes
    taken = {name for names in found.values() for name in names}
    for name in known:
        field = ALIASES.get(name, name)
        stem = re.sub(r"_\d+$", "", name)
        if field not in found and name not in taken and is_field(field):
            found[field] = [name]
        elif stem != name and stem in WIDE and stem not in found:
            numbered = [each for each in known if re.fullmatch(rf"{stem}_\d+", each)]
            found[stem] = sorted(numbered, key=lambda each: int(each.rpartition("_")[2]))
            check_numbers(stem, [each.rpartition("_")[2] for each in found[stem]], where)
    return Columns(found, classes or class_names(frame, found))


def is_field(name: str) -> bool:
    kind, dot, _ = name.partition(".")
    return name in (*KEYS, *SINGLE, *OF_SETS) or (bool(dot) and kind in NAMED)


def matching(pattern: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of a pattern and what its * stands for in each: sorted if these are numbers."""
    before, _, after = pattern.partition("*")
    found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    parts = [name.removeprefix(before).removesuffix(after) for name in found]
    if not all(map(str.isdecimal, parts)):
        return found, parts
    pairs = sorted(zip(found, parts, strict=True), key=lambda pair: int(pair[1]))
    return [name for name, _ in pairs], [part for _, part in pairs]


def check_matches(
    field: str, pattern: str, found: Sequence[str], parts: Sequence[str], known: Sequence[str], where: str
) -> None:
    """Refuse a pattern without a column, or with several for a field that has one."""
    if not found:
        raise unknown_name(pattern, known, f"column of {where}:")
    if len(found) > 1 and field not in WIDE:
        raise UserError(f"{where}: {field}={pattern}: expected one column, got {', '.join(found[:4])}")
    if len(found) > 1:
        check_numbers(field, parts, where)


def check_numbers(field: str, parts: Sequence[str], where: str) -> None:
    """Refuse columns of classes with a gap in their numbers: a class would stand in the place of another."""
    numbers = [int(part) for part in parts] if all(map(str.isdecimal, parts)) else []
    if field in TABLES and numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise UserError(f"{where}: {field}: expected columns numbered without gaps, got {', '.join(parts[:8])}")


def class_names(frame: "DataFrame", found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the classes that text means where no column is called after one: sorted by name."""
    if "labels" not in found or "predicted" not in found:
        return []
    columns = [frame[found[field][0]].dropna() for field in ("labels", "predicted")]
    if len({all(isinstance(value, str) for value in column) for column in columns}) > 1:
        return []  # one has text, the other numbers: neither says what the other means
    return sorted({str(value) for column in columns for value in column})


def runs_in(
    frame: "DataFrame", asked: Mapping[str, str], where: str, default: tuple[str, Any]
) -> Iterator[tuple[str, Any, Arrays]]:
    """Yield method, seed and arrays of each run of a table; `default` are those of a table without such columns."""
    frame = frame.rename(columns=str).reset_index(drop=True)
    if not len(frame):
        raise UserError(f"{where} has no lines; expected one for each sample")
    columns = find_columns(asked, frame, where)
    for key in KEYS:
        if key in columns.names:
            refuse_missing(frame[columns.one(key)], key, where)
    keys = [key for key in ("method", "seed") if key in columns.names]
    groups = frame.groupby([columns.one(key) for key in keys], sort=False) if keys else [((), frame)]
    for values, lines in groups:
        known = dict(zip(("method", "seed"), default, strict=True)) | dict(zip(keys, values, strict=True))
        yield str(known["method"]), known["seed"], arrays_of(lines, columns, where)


def arrays_of(lines: "DataFrame", columns: Columns, where: str) -> Arrays:
    """Return the arrays of one run, by part and field. A field that a part has no value of is left out there."""
    arrays: dict[str, Array] = {}
    for part, own in lines.groupby(columns.one("part"), sort=False) if "part" in columns.names else [("test", lines)]:
        for field, names in columns.names.items():
            prefix = part_prefix(str(part))
            is_of_others = field in OF_SETS and not prefix.startswith(SET)
            if field in KEYS or is_of_others or own[names].isna().all(axis=None):
                continue
            values = (
                wide_values(own, field, names, where) if field in WIDE else column_values(own[names[0]], field, where)
            )
            if field in ("labels", "predicted") and values.dtype.kind == "U":
                values = class_numbers(values, columns.classes, field, where)
            arrays[f"{prefix}{field}"] = values
    return arrays


def part_prefix(part: str) -> str:
    known = {"test": TEST, VAL: f"{VAL}.", "validation": f"{VAL}.", TRAIN: f"{TRAIN}."}
    return known.get(part, f"{SET}.{part}.")


def wide_values(lines: "DataFrame", field: str, names: Sequence[str], where: str) -> Array:
    """Return a field with several columns: one for each, or one whose values are lists."""
    if len(names) > 1:
        return np.column_stack([column_values(lines[name], name, where) for name in names])
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


def column_values(column: Any, field: str, where: str) -> Array:
    """Return one value per line: numbers as they are (a missing one is NaN), anything else as text."""
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return np.asarray(values)
    missing = column.isna().to_numpy()
    if all(isinstance(value, (int, float, np.number)) for value in values[~missing]):
        return np.array([np.nan if lost else value for value, lost in zip(values, missing, strict=True)], np.float64)
    refuse_missing(column, field, where)
    return np.array([str(value) for value in values])


def refuse_missing(column: Any, field: str, where: str) -> None:
    """Refuse a column of names in which some are missing."""
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        lines = counted(len(missing), "line has", "lines have")
        raise UserError(
            f"{where}: {field}: {lines} no value, first in row {column.index[missing[0]]}; rows count from 0"
        )


def class_numbers(values: Array, classes: Sequence[str], field: str, where: str) -> Array:
    """Return the classes of text as numbers."""
    number = {name: index for index, name in enumerate(classes)}
    unknown = [str(value) for value in values if str(value) not in number]
    if unknown:
        known = f"one of {', '.join(map(str, classes[:8]))}" if classes else "classes as whole numbers from 0"
        raise UserError(f"{where}: {field}: expected {known}, got {shown(unknown[0])}")
    return np.array([number[str(value)] for value in values])
