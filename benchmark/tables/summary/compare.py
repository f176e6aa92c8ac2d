"""Compare every method of a task with its baseline: the change by seed, a corrected test, and what a training costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, nan
from statistics import median

import numpy as np

from benchmark.measure.effects import mean_with_interval
from benchmark.measure.statistics import Array, relative_changes, seeds_for_power
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.build import fill_cell, reasons
from benchmark.tables.captions import is_provisional, test_notes
from benchmark.tables.columns import DAMAGED, Column, split_by_coverage
from benchmark.tables.markers import mark
from benchmark.tables.model import Cell, Row
from benchmark.tables.modified import open_table

FAMILY = "row"
"""A task's methods are one row of its own table: Holm's correction covers all of them."""
NOT_RUN = "not run on this task"
UNPAIRED = "imported runs of which nothing says that they are pairs"


@dataclass(frozen=True)
class Line:
    """A row of the table: a method read with one of its scores."""

    name: str
    label: str
    score: str
    """Empty for the score that the method was published with."""


@dataclass(frozen=True)
class Compared:
    """A method beside the baseline on one task, or why it cannot be compared."""

    by_seed: Mapping[int, float] = field(default_factory=dict)
    """The change in per cent of the baseline's value."""
    wanted: int = 0
    diverged: int = 0
    verdict: str = "tie"
    """The baseline is better or worse than the method, or it is a tie."""
    p: float = nan
    corrected_p: float = nan
    time: float = nan
    """Seconds of a training in those of the baseline; NaN where they are not known."""
    reason: str = ""

    @property
    def n(self) -> int:
        return len(self.by_seed)

    @cached_property
    def changes(self) -> Array:
        return np.array(list(self.by_seed.values()))

    @cached_property
    def mean(self) -> float:
        return mean_with_interval(self.changes)[0]

    @cached_property
    def half_width(self) -> float:
        """Return the half width of the t interval; infinite with one seed."""
        return mean_with_interval(self.changes)[1]

    @property
    def shown_width(self) -> float:
        """Return the half width as it is drawn: nothing with one seed."""
        return self.half_width if isfinite(self.half_width) else 0.0

    @property
    def is_significant(self) -> bool:
        return self.verdict != "tie"

    @cached_property
    def seeds_needed(self) -> float:
        """Return how many seeds it would take to show the change; NaN where it is shown, or nothing can be said."""
        return nan if self.is_significant else seeds_for_power(self.changes)


@dataclass(frozen=True)
class Regime:
    """A column of the table: one task."""

    task: str
    title: str
    baseline: str
    base: Cell | None
    """The values of the baseline."""
    lines: Sequence[Line]
    compared: Mapping[str, Compared]
    """By the name of a line."""
    notes: Sequence[str] = ()

    def at(self, line: Line) -> Compared:
        """Return the comparison of a line; where the task has no such column, what is known of its method."""
        if line.name in self.compared:
            return self.compared[line.name]
        own = next((each for each in self.lines if each.label == line.label and not each.score), None)
        if own is None:
            return Compared(reason=NOT_RUN)
        found = self.compared[own.name]
        return Compared(wanted=found.wanted, reason=found.reason or "its runs have no such score")


def compare_task(manifest: Manifest, title: str, row: Row, test: str, store: Store) -> Regime:
    """Return the column of a task: all its methods beside its baseline, by one measure."""
    judged = replace(manifest, reference=manifest.baseline, holm=FAMILY, test=test, shows=("markers",), intervals=False)
    opened, every = open_table(judged, store)
    columns = split_by_coverage([column for column in every if not column.is_oracle])
    filled = {(row.label, column.name): fill_cell(row, column) for column in columns}
    cells = {key: cell for key, cell in filled.items() if cell is not None}
    if opened.paired:
        cells = mark(cells, [row], opened.baseline, test, FAMILY)
    base = next((column for column in columns if column.name == opened.baseline), None)
    compared = {
        column.name: compare(row, column, base, cells.get((row.label, column.name)), opened, cells)
        for column in columns
        if column is not base
    }
    notes = list(test_notes(opened, columns, cells)) if opened.paired else []
    notes += ["Provisional: not all runs are there."] if is_provisional(columns) else []
    notes += [opened.modified] if opened.modified else []
    lines = [Line(column.name, column.label, "" if column.published else column.score) for column in columns]
    base_cell = cells.get((row.label, opened.baseline))
    return Regime(opened.task, title or opened.title, opened.baseline, base_cell, lines, compared, notes)


def compare(
    row: Row,
    column: Column,
    base: Column | None,
    cell: Cell | None,
    manifest: Manifest,
    cells: Mapping[tuple[str, str], Cell],
) -> Compared:
    """Return what a column changes against the baseline, or why nothing can be said."""
    theirs = cells.get((row.label, manifest.baseline))
    reason = why_not(row, column, cell) or why_not_against(manifest, theirs)
    if reason or cell is None or theirs is None or base is None:
        return Compared(wanted=column.wanted, reason=reason)
    changes = relative_changes(theirs.by_seed, cell.by_seed)
    if not changes:
        none = set(theirs.by_seed) & set(cell.by_seed)
        reason = f"{manifest.baseline} has 0 there" if none else f"no seed in common with {manifest.baseline}"
        return Compared(wanted=column.wanted, reason=reason)
    time = nan if manifest.set_of else time_ratio(base, column)
    return Compared(changes, column.wanted, cell.diverged, cell.verdict, cell.p, cell.corrected_p, time)


def why_not(row: Row, column: Column, cell: Cell | None) -> str:
    """Return why a column has no value; empty where it has one."""
    if cell is not None and cell.values:
        return ""
    if column.records:
        return next(iter(reasons(row, column)), "its runs have no such value")
    if column.damaged:
        return DAMAGED
    return column.reason or ("all of its runs diverged" if column.diverged else "no run is finished")


def why_not_against(manifest: Manifest, base: Cell | None) -> str:
    """Return why nothing can be compared with the baseline of a task; empty where it can."""
    if not manifest.paired:
        return UNPAIRED
    return "" if base is not None and base.values else f"no run of the baseline {manifest.baseline or 'of the task'}"


def time_ratio(base: Column, column: Column) -> float:
    """Return the median over seeds of the seconds of a run in those of the baseline, both made on equal machines.

    Each counts in full what it shares with others: a warm-up, a training that it takes over, all members of a
    combination.
    """
    of_base = {record.seed: record.provenance for record in base.records}
    ratios = [
        record.provenance.seconds / there.seconds
        for record in column.records
        if (there := of_base.get(record.seed)) is not None
        and record.provenance.seconds
        and there.seconds
        and list(record.provenance.environments) == list(there.environments)
    ]
    return median(ratios) if ratios else nan
