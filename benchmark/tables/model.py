"""Define rows, cells, tables and sheets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.measure.bootstrap import interval
from benchmark.store.record import Record

Value = Callable[[Record, str], float | None]
"""From a record and the name of a score: the value of one run, None where it does not exist."""


@dataclass(frozen=True)
class Row:
    label: str
    value: Value
    scale: float = 100.0
    decimals: int = 2
    lower_is_better: bool = True
    coverage: float | None = None
    """In per cent, of a row of selective risks."""
    measure: str = "risk"
    """Its name in records."""
    ratio: float | None = None
    """In per cent, of a row of costs."""

    @property
    def sign(self) -> int:
        """Return 1 where lower values are better, else -1."""
        return 1 if self.lower_is_better else -1

    @property
    def key(self) -> str:
        """Return its name among measures of a run: `aurc`, `risk@90`, `cost_10`."""
        if self.ratio is not None:
            return f"{self.measure}_{self.ratio:g}"
        return self.measure if self.coverage is None else f"{self.measure}@{self.coverage:g}"


@dataclass(frozen=True)
class Cell:
    """The values of the finished runs, of those that are wanted: a table shows their mean and standard deviation."""

    by_seed: dict[int, float]
    wanted: int
    decimals: int
    best: bool = False
    second: bool = False
    verdict: str = "tie"
    """The reference method is better or worse than this cell, or it is a tie."""
    p: float = nan
    corrected_p: float = nan
    """After Holm's correction, if there is one."""
    diverged: int = 0
    """Runs without a value because their training diverged."""
    ddof: int = 0
    """The standard deviation divides by n − ddof."""
    draws: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    """The value in resampled test images, where the table has intervals over these."""

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Return the ends of the interval over test images, where there is one."""
        return None if self.draws is None or not len(self.draws) else interval(self.draws)

    @property
    def interval_text(self) -> str:
        if self.interval is None or np.isnan(self.interval).any():
            return ""
        low, high = self.interval
        return f" [{low:.{self.decimals}f}, {high:.{self.decimals}f}]"

    @cached_property
    def values(self) -> tuple[float, ...]:
        return tuple(self.by_seed.values())

    @cached_property
    def mean(self) -> str:
        """Return the mean as printed; ranks and best entries are decided by it."""
        return f"{np.mean(self.values):.{self.decimals}f}"

    @cached_property
    def spread(self) -> float:
        """Return the standard deviation over runs; nan where there are too few."""
        return float(np.std(self.values, ddof=self.ddof)) if len(self.values) > self.ddof else nan

    @property
    def std(self) -> str:
        return f"{self.spread:.{self.decimals}f}"

    @property
    def missing(self) -> str:
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        return f"({len(self.values)}/{self.wanted}{diverged})" if len(self.values) < self.wanted else ""


Cells = dict[tuple[str, str], Cell]
"""By row and column."""


@dataclass(frozen=True)
class Table:
    name: str
    caption: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Cells
    summary: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows of plain text below the cells: w/t/l and average rank."""
    strong: frozenset[tuple[str, str]] = frozenset()
    """(row, column) of the summary that are the best."""
    notes: tuple[str, ...] = ()
    modified: str = ""
    """What the runs were made with that the file of their task does not say."""
    label: str = ""
    """What LaTeX refers to it by."""
    transposed: bool = False
    """Whether each method is a row instead of a column."""


@dataclass(frozen=True)
class Sheet:
    """A table of plain text, for all that is not mean±std: the texts that people read, and the unrounded numbers."""

    name: str
    caption: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()
    """One for each line of the CSV file."""
    modified: str = ""
    label: str = ""
