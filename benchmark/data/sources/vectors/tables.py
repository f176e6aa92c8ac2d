"""Read a table: which of its columns are numbers, text or labels, and what does not fit."""

import fnmatch
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.base.rows import read_frame, table_suffix
from benchmark.config.task import DataConfig
from benchmark.data.sources.vectors.columns import COUNTED, Part, label_kind

if TYPE_CHECKING:
    from pandas import DataFrame, Series

ALL_TEXT = "all"
"""What data.one_hot says for all columns of text."""
NAMELESS = "Unnamed: "
"""How pandas begins the names of columns that have none."""


def read_table(path: Path, config: DataConfig) -> Part:
    """Return the rows of a table. Raise UserError, with row and column, for text in a column of numbers."""
    frame = read_frame(path, partial(category_columns, config)).rename(columns=str)
    check_heading(frame, path)
    frame = frame.reset_index(drop=True)
    where, known = f"'{path}'", list(frame.columns)
    if config.labels not in known:
        raise unknown_name(config.labels, known, f"label column (data.labels) of {where}:")
    labels = label_column(frame[config.labels], config.labels, where)
    label_kind(labels, where)
    used = used_columns(config, known, where)
    categories = set(category_columns(config, used))
    for pattern in config.one_hot:
        if pattern != ALL_TEXT and not fnmatch.filter(used, pattern):
            raise unknown_name(pattern, used, f"column (data.one_hot) of {where}:")
    if ALL_TEXT in config.one_hot:
        categories |= {name for name in used if is_text(frame[name])}
    numbers = [name for name in used if name not in categories]
    columns = [number_column(frame[name], name, where) for name in numbers]
    values = np.column_stack(columns) if columns else np.empty((len(frame), 0), np.float32)
    texts = {name: text_column(frame[name]) for name in used if name in categories}
    return Part(values, labels, where, numbers, texts)


def check_heading(frame: "DataFrame", path: Path) -> None:
    """Refuse rows with more values than there are names: pandas would take the first for names of the rows."""
    is_csv = table_suffix(path) in (".csv", ".tsv")
    if is_csv and len(frame) and type(frame.index).__name__ != "RangeIndex":
        raise UserError(f"'{path}': the rows have more values than its first line has names; name every column")


def category_columns(config: DataConfig, names: Sequence[str]) -> list[str]:
    """Return the columns that data.one_hot names, whether they hold text or numbers."""
    wanted = [pattern for pattern in config.one_hot if pattern != ALL_TEXT]
    return [str(name) for name in names if matches(str(name), wanted)]


def used_columns(config: DataConfig, known: Sequence[str], where: str) -> list[str]:
    """Return the columns that vectors are made of: all but the labels, or those that data.columns names."""
    others = [name for name in known if name != config.labels]
    for pattern in config.columns:
        if not fnmatch.filter(others, pattern.removeprefix("!")):
            raise unknown_name(pattern.removeprefix("!"), others, f"column (data.columns) of {where}:")
    left_out = [pattern[1:] for pattern in config.columns if pattern.startswith("!")]
    wanted = [pattern for pattern in config.columns if not pattern.startswith("!")] or ["*"]
    used = [name for name in others if matches(name, wanted) and not matches(name, left_out)]
    if not used:
        raise UserError(f"{where}: no column is left to make vectors of")
    if not config.columns and (nameless := [name for name in used if name.startswith(NAMELESS)]):
        raise UserError(
            f"{where}: column {known.index(nameless[0])} has no name, and may just number the rows; name it, or leave "
            f'it out with data.columns = ["!{nameless[0]}"]'
        )
    return used


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def is_text(column: "Series") -> bool:
    """Tell whether a column has text or categories, whatever numbers are among it."""
    from pandas.api import types

    return not types.is_numeric_dtype(column) and not types.is_datetime64_any_dtype(column)


def number_column(column: "Series", name: str, where: str) -> NDArray[Any]:
    """Return a column of numbers; a missing one is NaN. Floats keep their precision."""
    import pandas
    from pandas.api import types

    if types.is_numeric_dtype(column):
        kept = column.dtype if column.dtype in (np.float16, np.float32) else np.float64
        return np.asarray(column.to_numpy(kept, na_value=np.nan))
    if not is_text(column):
        raise UserError(f"{where}: column '{name}' has {column.dtype}, expected numbers; leave it out by data.columns")
    numbers = pandas.to_numeric(column.astype(object), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.isnan(numbers) & column.notna().to_numpy())
    if len(wrong):
        raise UserError(
            f"{where}: column '{name}' has {shown(column.iloc[wrong[0]])} in row {wrong[0]}, expected a number; "
            f"{COUNTED}; columns of text can be named in data.one_hot, missing values are left empty"
        )
    return np.asarray(numbers)


def text_column(column: "Series") -> NDArray[Any]:
    """Return a column of text; a missing value is None."""
    lost = column.isna().to_numpy()
    return np.array([None if gone else str(value) for value, gone in zip(column, lost, strict=True)], object)


def label_column(column: "Series", name: str, where: str) -> NDArray[Any]:
    """Return the classes as whole numbers or text; anything else is left to be refused."""
    from pandas.api import types

    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        raise UserError(f"{where}: label column '{name}' has no value in row {missing[0]}; {COUNTED}")
    if types.is_bool_dtype(column) or types.is_integer_dtype(column):
        return np.asarray(column.to_numpy(np.int64))
    return np.asarray(column) if types.is_numeric_dtype(column) else np.array([str(value) for value in column])
