"""Find what moved between two results folders: equal jobs to the bit, others beyond chance and a margin.

Another kind of machine or another torch rounds otherwise: its runs are compared like those of another job.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

from benchmark.base.units import counted
from benchmark.measure.labels import name_at
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.measure.sets.parts import PartMeasures, SetMeasures
from benchmark.measure.statistics import LEVEL, Summary, holm, mean_std, welch
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.measuring import up_to_date
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.tables.build import fill_cell, risk_rows
from benchmark.tables.columns import Column, abbreviate, load_columns
from benchmark.tables.model import Cell, Row
from benchmark.tables.sets.build import set_outlines

MARGIN = 0.1
"""In points of risk: a smaller change is not reported."""
MEASURED: dict[str, Callable[[Record], Any]] = {
    "classifier": lambda record: record.measures.classifier,
    "scores": lambda record: record.measures.scores,
    "num_test": lambda record: record.measures.num_images,
    "at_epochs": lambda record: {epoch: replace(each, further={}) for epoch, each in record.at_epochs.items()},
    "facts": lambda record: record.facts,
    "diverged": lambda record: record.diverged,
    "evaluation": lambda record: record.evaluation and replace(record.evaluation, version=0),
}
"""Parts that must be equal in two records of one job and seed."""
NamedCells = dict[tuple[str, str], tuple[str, Cell]]
"""By column with its score, and row: the column's name, which may leave the score out, and the cell."""


@dataclass
class Difference:
    """What two results folders do not have in common."""

    old: Store
    new: Store
    moved: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """What only the old folder has."""
    notes: list[str] = field(default_factory=list)
    runs: dict[Path, str] = field(default_factory=dict)
    """How runs of the same job compare, by folder: equal, changed, rounded (not equal, but made elsewhere), missing,
    unknown (its risks are: other code measured them, and nothing can measure them again)."""
    not_compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Runs by the measures and scores that are not known of them, and why."""
    tested: dict[tuple[str, str], tuple[Cell, Cell]] = field(default_factory=dict)
    """Cells of other jobs or machines: the old and the new one, by table and name."""

    def count_runs(self, outcome: str) -> int:
        return list(self.runs.values()).count(outcome)

    def compare_tables(self, table: str, old: Manifest, new: Manifest) -> None:
        """Compare entries with the same job by their records, and the rest by their cells."""
        before, after = entries_by_name(old), entries_by_name(new)
        self.gone += [f"{table} {name}" for name in before if name not in after]
        self.notes += [f"{table} {name}: new" for name in after if name not in before]
        old_entries, new_entries = [], []
        for name in before:
            if name in after and self.compare_runs(f"{table} {name}", old.task, before[name], after[name]):
                old_entries.append(before[name])
                new_entries.append(after[name])
        self.compare_cells(table, cells_of(old, old_entries, self.old), cells_of(new, new_entries, self.new))

    def compare_runs(self, what: str, task: str, old: ManifestEntry, new: ManifestEntry) -> bool:
        """Compare the runs of an entry. Return whether its cells have to be compared, too."""
        common = sorted(set(old.seeds) & set(new.seeds))
        lost = sorted(set(old.seeds) - set(new.seeds))
        if lost and common:
            self.gone.append(f"{what} seed {', '.join(map(str, lost))}")
        if old.job != new.job or not common:
            return True
        rounded = False
        for seed in common:
            folder = folder_of(task, old.method, old.job, seed)
            if folder not in self.runs:  # another table may show the same run
                self.runs[folder] = self.compare_run(f"{what} seed {seed}", folder)
                rounded |= self.runs[folder] == "rounded"
        return rounded

    def compare_run(self, what: str, folder: Path) -> str:
        """Compare the two records of a run. One that was only rounded otherwise has not moved."""
        old, new = (store.read_record(folder) for store in (self.old, self.new))
        if old is None or new is None:
            self.gone += [what] if old is not None else []
            return "missing"
        old, new = up_to_date(old, folder, self.old), up_to_date(new, folder, self.new)
        unknown = old.reasons.keys() | new.reasons.keys()
        parts = [name for name, part in MEASURED.items() if not is_same(part(old), part(new), unknown)]
        if unknown:
            self.not_compared[abbreviate(sorted(unknown)), next(iter({**old.reasons, **new.reasons}.values()))] += 1
        if not parts:
            return "unknown" if unknown & {"risk", *old.measures.scores} else "equal"
        if old.provenance.environments != new.provenance.environments:
            return "rounded"
        self.moved.append(f"{what}: same job, other {', '.join(parts)}{largest_change(old, new)}")
        return "changed"

    def compare_cells(self, table: str, old: NamedCells, new: NamedCells) -> None:
        """Pair the cells of a table for the test. A cell with more diverged runs has moved in any case."""
        for key, (column, before) in old.items():
            what = f"{column} {key[1]}"
            if key not in new:
                self.gone.append(f"{table} {what}")
                continue
            after = new[key][1]
            self.tested[table, what] = (before, after)
            if after.diverged > before.diverged:
                self.moved.append(f"{table} {what} %: {after.missing}, before {before.missing or 'all there'}")

    def find_moved_cells(self) -> None:
        """Find cells that differ by Welch's test, Holm-corrected over all of them, and by more than the margin."""
        p_values = {}
        for key, pair in self.tested.items():
            p = welch(*(Summary(*mean_std(cell.values), len(cell.values)) for cell in pair)).p
            if not isnan(p):
                p_values[key] = p
        if untested := len(self.tested) - len(p_values):
            self.notes.append(f"{counted(untested, 'cell')} cannot be tested: one of the two has only one seed")
        for key, p in holm(p_values).items():
            old, new = self.tested[key]
            change = mean_std(new.values)[0] - mean_std(old.values)[0]
            if p < LEVEL and abs(change) > MARGIN:
                means = f"{old.mean}±{old.std} → {new.mean}±{new.std}"
                self.moved.append(f"{' '.join(key)} %: {means} ({change:+.2f} points, corrected p = {p:.4f})")


def compare_folders(old: Store, new: Store) -> Difference:
    """Return the differences of two results folders."""
    found = Difference(old, new)
    old_tables, new_tables = manifests_of(old), manifests_of(new)
    for name, manifest in old_tables.items():
        if name in new_tables:
            found.compare_tables(name, manifest, new_tables[name])
        else:
            found.gone.append(name)
    found.notes += [f"{name}: new" for name in new_tables if name not in old_tables]
    found.find_moved_cells()
    for (names, why), count in found.not_compared.items():
        found.notes.append(f"{counted(count, 'run')} not compared by {names}: {why}")
    return found


def manifests_of(store: Store) -> dict[str, Manifest]:
    tasks = {manifest.name: manifest for manifest in store.manifests()}
    return tasks | {f"paper/{manifest.name}": manifest for manifest in store.paper_manifests()}


def entries_by_name(manifest: Manifest) -> dict[str, ManifestEntry]:
    return {name_at(entry.label, entry.coverage): entry for entry in manifest.entries}


def is_same(old: Any, new: Any, unknown: AbstractSet[str]) -> bool:
    """Tell whether all that the old record has is in the new one, equal to the bit; the new one may have more.

    Measures and scores that other code made and nothing can make again are unknown, and not compared.
    """
    if isinstance(old, ClassifierMeasures | ScoreMeasures | Measures | SetMeasures | PartMeasures) and type(
        old
    ) is type(new):
        known = [name for name, value in vars(old).items() if value is not None and name not in unknown]
        return all(is_same(vars(old)[name], vars(new)[name], unknown) for name in known)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        compared = [name for name in old if name not in unknown]  # the names of scores among them
        return old.keys() <= new.keys() and all(is_same(old[name], new[name], unknown) for name in compared)
    return bool(old == new)


def says_all_of(new: Record, old: Record) -> bool:
    """Tell whether a record has all that an older one of its run has measured, equal to the bit."""
    parts = ("measures", "held_out", "at_epochs", "evaluation", "facts", "diverged", "bound")
    return all(is_same(getattr(old, name), getattr(new, name), frozenset()) for name in parts)


def largest_change(old: Record, new: Record) -> str:
    """Describe the largest change of a risk curve, which is what people look at; empty where none changed."""
    changes = [(0.0, "", 0, 0.0, 0.0)]
    for score in old.measures.scores:
        if score in new.measures.scores:
            curves = zip(old.score(score).risk or (), new.score(score).risk or (), strict=False)
            changes += [(abs(a - b), score, index, a, b) for index, (a, b) in enumerate(curves)]
    size, score, index, before, after = max(changes)
    return f"; {score} risk at {index / 2:g} %: {100 * before:.4f} → {100 * after:.4f}" if size else ""


def cells_of(manifest: Manifest, entries: Sequence[ManifestEntry], store: Store) -> NamedCells:
    """Return the cells of some entries. Their keys always have the score, as a method may put another one first."""
    columns = load_columns(replace(manifest, entries=tuple(entries), columns=()), store) if entries else []
    cells, rows = {}, compared_rows(manifest, columns)
    for column in (column for column in columns if not column.is_oracle):
        name = f"{column.name}+{column.score}" if column.published else column.name
        for label, row in rows.items():
            cell = fill_cell(row, column)
            if cell is not None and cell.values:
                cells[name, label] = column.name, cell
    return cells


def compared_rows(manifest: Manifest, columns: Sequence[Column]) -> dict[str, Row]:
    """Return the rows in per cent, by name: risks of all images, and what there is of parts of an evaluation set."""
    outlines = [outline for outline in set_outlines(manifest, columns) if outline.is_at_coverages]
    of_parts = {f"{outline.name}: {row.label}": row for outline in outlines for row in outline.rows}
    return {row.label: row for row in risk_rows(manifest)} | of_parts
