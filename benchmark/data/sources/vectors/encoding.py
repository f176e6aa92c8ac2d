"""Make numbers of all columns: fill what is missing, spread text over columns of 0 and 1, drop what never varies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.sources.vectors.columns import COUNTED, Matrix, Part, quoted

BLOCK = 2**22
"""Numbers that are looked at together: files may be larger than memory."""
MOST_CATEGORIES = 1000
MOST_NAMED = 3
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Encoding:
    """What is known from the training vectors, and applied to all."""

    medians: NDArray[np.float64] | None
    """Of each column of numbers, in the place of missing ones; None where these are refused."""
    categories: Mapping[str, Sequence[str]]
    """By column of text: the values that have a column of their own."""
    kept: NDArray[np.int64] | None
    """The columns that vary, where others are dropped."""

    @classmethod
    def fit(cls, part: Part, rows: NDArray[np.int64], config: DataConfig) -> "Encoding":
        medians = training_medians(part, rows) if config.missing == "median" else None
        categories = {name: categories_of(part, name, rows) for name in part.texts}
        every = cls(medians, categories, None)
        if config.mean:  # nothing is divided by what is measured
            return every
        constant = np.flatnonzero(constant_in(every.encode(part), rows))
        if not len(constant):
            return every
        names = every.names(part)
        if config.constant == "refuse":
            same = listed([names[index] for index in constant.tolist()])
            raise UserError(
                f"{part.where}: {same} the same value in all training rows and cannot be standardised; leave it out by "
                'data.columns, or set data.constant = "drop"'
            )
        kept = np.setdiff1d(np.arange(len(names)), constant)
        if not len(kept):
            raise UserError(f"{part.where}: no column varies among the training rows")
        return cls(medians, categories, kept)

    def names(self, part: Part) -> list[str]:
        """Return the names of all columns before any is dropped."""
        one_hot = (f"{name}={value}" for name, values in self.categories.items() for value in values)
        return [*part.names, *one_hot]

    def encode(self, part: Part) -> Matrix:
        """Return the vectors of a part. Raise UserError, with row and column, for what is missing or not finite."""
        values = part.values if part.values.dtype.kind == "f" else part.values.astype(np.float32)
        values = self.filled(values, part)
        if part.texts:
            self.check_texts(part)
            columns = [part.texts[name] == value for name, values in self.categories.items() for value in values]
            values = np.column_stack([values, *columns]).astype(values.dtype)
        return values if self.kept is None else values[:, self.kept]

    def filled(self, values: Matrix, part: Part) -> Matrix:
        """Return a matrix of finite numbers; it is copied where some are missing."""
        result = values
        step = rows_of_block(values)
        for start in range(0, len(values), step):
            block = values[start : start + step]
            missing = np.isnan(block)
            with np.errstate(over="ignore"):
                wrong = ~np.isfinite(block.astype(np.float32)) & ~(missing & (self.medians is not None))
            if wrong.any():
                row, column = np.argwhere(wrong)[0].tolist()
                refuse(part, part.names[column], start + row, block[row, column].item())
            if self.medians is not None and missing.any():
                result = np.array(values) if result is values else result
                result[start : start + step] = np.where(missing, self.medians, block)
        return result

    def check_texts(self, part: Part) -> None:
        """Refuse a missing value where it is not asked to stand for no category."""
        for name, column in part.texts.items():
            missing = np.flatnonzero([value is None for value in column])
            if len(missing) and self.medians is None:
                refuse(part, name, int(missing[0]), math.nan)


def refuse(part: Part, name: str, row: int, value: float) -> NoReturn:
    """Raise UserError for a value that cannot be trained on."""
    where = f"{part.where}: {quoted(name)} has"
    if math.isnan(value):
        hint = 'set data.missing = "median" to fill it from the training rows, or leave the column out'
        raise UserError(f"{where} no value in row {row}; {COUNTED}; {hint}")
    raise UserError(f"{where} {value:g} in row {row}, expected numbers up to {LARGEST:.2g}; {COUNTED}")


def rows_of_block(values: Matrix) -> int:
    return int(max(1, BLOCK // max(1, values.shape[1])))


def training_medians(part: Part, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the median of each column of numbers. Raise UserError for one without any value."""
    train = np.asarray(part.values[rows], np.float64)
    empty = np.flatnonzero(np.isnan(train).all(axis=0))
    if len(empty):
        names = [part.names[index] for index in empty.tolist()]
        raise UserError(f"{part.where}: {listed(names)} no value in any training row, and so no median; leave it out")
    return np.asarray(np.nanmedian(train, axis=0))


def categories_of(part: Part, name: str, rows: NDArray[np.int64]) -> list[str]:
    """Return the values of a column of text that occur among the training rows, sorted."""
    found = sorted({value for value in part.texts[name][rows] if value is not None})
    if not 0 < len(found) <= MOST_CATEGORIES:
        raise UserError(
            f"{part.where}: {quoted(name)} has {counted(len(found), 'different value')} in the training rows; one-hot "
            f"columns are made of 1 to {MOST_CATEGORIES:,}"
        )
    return found


def constant_in(values: Matrix, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which columns have one value alone in some rows, in the precision in which they are kept."""
    least, most = (np.full(values.shape[1], limit, np.float32) for limit in (np.inf, -np.inf))
    step = rows_of_block(values)
    for start in range(0, len(rows), step):
        block = values[rows[start : start + step]].astype(np.float32)
        least, most = np.minimum(least, block.min(axis=0)), np.maximum(most, block.max(axis=0))
    return np.asarray(least == most)


def listed(names: Sequence[str]) -> str:
    """Return the first of some columns and their number, with the verb."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(quoted(name) for name in names[:MOST_NAMED])}{more} {'has' if len(names) == 1 else 'have'}"
