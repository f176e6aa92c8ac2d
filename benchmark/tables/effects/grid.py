"""Find the crossed grid in the columns of a manifest: which cell each of them is, and the values of its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmark.measure.effects import zero_level
from benchmark.measure.labels import name_at
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.tables.build import MEASURES, run_values
from benchmark.tables.columns import Column, abbreviate, gains_by_seed, split_by_coverage
from benchmark.tables.model import Row

Key = tuple[str, ...]
"""A cell of the grid: the method, and a level of each factor."""
Values = Mapping[Key, Mapping[int, float]]
"""A response by cell and seed."""
RANKING = Row("ranking ×10³", lambda record, score: None, scale=1000, lower_is_better=False, measure="ranking")
LABELS = {"aurc": "AURC ×10³", "augrc": "AUGRC ×10³", "accuracy": "accuracy (points)"}
"""Of differences: those of percentages are points."""
RESPONSES = (*(replace(row, label=LABELS[row.measure]) for row in MEASURES if row.measure in LABELS), RANKING)


@dataclass(frozen=True)
class Grid:
    """Methods crossed with the levels of all factors, with what the manifest says of each cell, and its runs."""

    methods: tuple[str, ...]
    factors: tuple[tuple[str, tuple[str, ...]], ...]
    """Without levels that no entry has."""
    entries: Mapping[Key, ManifestEntry]
    columns: Mapping[Key, Column]
    """By the score that each method was published with."""
    baseline: str
    """The method that others are compared with; empty where it is not in the grid."""

    @property
    def zeros(self) -> Key:
        """Return the level of each factor that effects are counted from."""
        return tuple(zero_level(levels) for _, levels in self.factors)

    def name_of(self, factor: int, level: str) -> str:
        """Return what the effect of a level is called: the level alone, if that says which effect is meant."""
        name, zero = self.factors[factor][0], self.zeros[factor]
        shared = sum(level in levels for _, levels in self.factors) > 1
        against = "" if zero == "none" else f" against {zero}"
        return f"{name} {level}{against}" if shared or against else level

    def values(self, row: Row) -> Values:
        """Return the values of a response, of the runs that have one, in the unit of its row."""
        if row is not RANKING:
            return {key: run_values(row, column) for key, column in self.columns.items()}
        return {key: self.ranking_gains(key) for key in self.columns}

    def ranking_gains(self, key: Key) -> dict[int, float]:
        """Return what a cell gains by its ranking over its method without ingredients, in the runs of one seed."""
        base = self.columns.get((key[0], *self.zeros))
        gains = gains_by_seed(base, self.columns[key]) if base else {}
        return {seed: RANKING.scale * ranking for seed, (ranking, _) in gains.items()}

    def why_empty(self, keys: Sequence[Key], row: Row) -> str:
        """Return why cells have no value of a response."""
        labels_by_reason: dict[str, list[str]] = {}
        for key in keys:
            label = self.entries[key].label if key in self.entries else " ".join(key)
            labels_by_reason.setdefault(self.reason_of(key, row), []).append(label)
        return "; ".join(f"{abbreviate(labels)}: {reason}" for reason, labels in labels_by_reason.items())

    def reason_of(self, key: Key, row: Row) -> str:
        column = self.columns.get(key)
        if column is None:
            return "not among what is shown"
        if column.records:
            return f"no {row.label.split()[0]}"
        every = "all runs diverged" if len(column.diverged) == column.wanted else "some runs diverged, others not there"
        return column.reason or (every if column.diverged else "no run yet")


def find_grid(manifest: Manifest, columns: Sequence[Column]) -> Grid | None:
    """Return the grid of a manifest with factors; None where it has none, its seeds are no pairs, or no run is there.

    Where a label has several settings, only those that the last command asked for are in the grid.
    """
    if not manifest.factors or not manifest.paired:
        return None
    entries: dict[Key, ManifestEntry] = {}
    for entry in manifest.entries:
        if is_cell(entry, manifest):
            entries.setdefault((name_at(entry.base, entry.coverage), *entry.levels), entry)
    shown = {(each.label, each.coverage): each for each in split_by_coverage(columns) if each.published}
    found = {key: shown.get((entry.label, entry.coverage)) for key, entry in entries.items()}
    cells = {key: column for key, column in found.items() if column is not None}
    if not any(column.records for column in cells.values()):
        return None
    named = (entry.base for entry in entries.values() if manifest.baseline in (entry.base, entry.label))
    return Grid(
        methods=tuple(dict.fromkeys(key[0] for key in entries)),
        factors=tuple(
            (name, levels_of(index, levels, entries)) for index, (name, levels) in enumerate(manifest.factors)
        ),
        entries=entries,
        columns=cells,
        baseline=next(named, "") if manifest.baseline else "",
    )


def is_cell(entry: ManifestEntry, manifest: Manifest) -> bool:
    """Tell whether an entry is a cell of the manifest's grid: an earlier command may have had other factors."""
    if len(entry.levels) != len(manifest.factors):
        return False
    return all(level in levels for level, (_, levels) in zip(entry.levels, manifest.factors, strict=True))


def levels_of(factor: int, levels: Sequence[str], entries: Mapping[Key, ManifestEntry]) -> tuple[str, ...]:
    """Return the levels of a factor that some entry has, and the one that effects are counted from."""
    return tuple(
        level for level in levels if level == zero_level(levels) or any(key[1 + factor] == level for key in entries)
    )
