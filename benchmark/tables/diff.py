"""Find what moved between two results folders: equal jobs to the bit, others beyond chance and a margin.

Another kind of machine or another torch rounds otherwise: its runs are compared like those of another job.
"""

from collections.abc import Container
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from benchmark.base.units import counted
from benchmark.measure.statistics import LEVEL, Summary, holm, mean_std, welch
from benchmark.store.store import Store, folder_of
from benchmark.tables.build import fill_cell, risk_rows, with_defaults
from benchmark.tables.columns import load_columns
from benchmark.tables.model import Cell

MARGIN = 0.1
"""In points of risk: a smaller change is not reported."""
MEASURED = ("classifier", "scores", "num_test", "at_epochs", "facts", "diverged")
"""Parts that must be equal in two records of one job and seed."""


@dataclass
class Difference:
    """What two results folders, or parts of them, do not have in common."""

    moved: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """What only the old folder has."""
    notes: list[str] = field(default_factory=list)
    runs: dict[Path, str] = field(default_factory=dict)
    """How runs of the same job compare, by folder: equal, changed, rounded (not equal, but made elsewhere), missing."""
    tested: dict[tuple[str, str], tuple[Cell, Cell]] = field(default_factory=dict)
    """Cells of other jobs or machines: the old and the new one, by table and name."""

    def add(self, other: "Difference") -> None:
        self.moved += other.moved
        self.gone += other.gone
        self.notes += other.notes
        self.runs |= other.runs
        self.tested |= other.tested

    def count_runs(self, outcome: str) -> int:
        return list(self.runs.values()).count(outcome)


def compare_folders(old: Store, new: Store) -> Difference:
    """Return the differences of two results folders. A run that several tables show is compared once."""
    old_tables, new_tables = manifests_of(old), manifests_of(new)
    found = Difference()
    for name in old_tables:
        if name not in new_tables:
            found.gone.append(name)
            continue
        manifests = with_defaults(old_tables[name]), with_defaults(new_tables[name])
        found.add(compare_tables(name, manifests, (old, new), found.runs))
    found.notes += [f"{name}: new" for name in new_tables if name not in old_tables]
    found.add(find_moved_cells(found.tested))
    return found


def manifests_of(store: Store) -> dict[str, dict[str, Any]]:
    tasks = {manifest["name"]: manifest for manifest in store.manifests()}
    return tasks | {f"paper/{manifest['name']}": manifest for manifest in store.paper_manifests()}


def compare_tables(
    name: str, manifests: tuple[dict[str, Any], dict[str, Any]], stores: tuple[Store, Store], seen: Container[Path]
) -> Difference:
    """Compare entries with the same job by their records, and the rest by their cells. Leave out the runs `seen`."""
    old, new = ({entry_key(entry): entry for entry in manifest["entries"]} for manifest in manifests)
    found = Difference(
        gone=[f"{name} {entry_name(key)}" for key in old if key not in new],
        notes=[f"{name} {entry_name(key)}: new" for key in new if key not in old],
    )
    by_cells = []
    for key in (key for key in old if key in new):
        what, job = f"{name} {entry_name(key)}", old[key]["job"]
        common = sorted(set(old[key]["seeds"]) & set(new[key]["seeds"]))
        lost = sorted(set(old[key]["seeds"]) - set(new[key]["seeds"]))
        if lost and common:
            found.gone.append(f"{what} seed {', '.join(map(str, lost))}")
        if job != new[key]["job"] or not common:
            by_cells.append(key)
            continue
        folders = {seed: folder_of(manifests[0]["task"], old[key]["method"], job, seed) for seed in common}
        unseen = {seed: path for seed, path in folders.items() if path not in seen and path not in found.runs}
        runs = compare_runs(what, unseen, stores)
        found.add(runs)
        if runs.count_runs("rounded"):
            by_cells.append(key)
    old_cells = cells_of(manifests[0], [old[key] for key in by_cells], stores[0])
    new_cells = cells_of(manifests[1], [new[key] for key in by_cells], stores[1])
    found.add(compare_cells(name, old_cells, new_cells))
    return found


def entry_key(entry: dict[str, Any]) -> tuple[str, float | None]:
    return entry["label"], entry.get("coverage")


def entry_name(key: tuple[str, float | None]) -> str:
    return key[0] if key[1] is None else f"{key[0]}@{key[1]:g}"


def compare_runs(what: str, folders: dict[int, Path], stores: tuple[Store, Store]) -> Difference:
    """Compare the records in these folders, by seed. Those that were only rounded otherwise have not moved."""
    found = Difference()
    for seed, folder in folders.items():
        old, new = (store.read_record(folder) for store in stores)
        if old is None or new is None:
            found.runs[folder] = "missing"
            found.gone += [f"{what} seed {seed}"] if old is not None else []
            continue
        parts = [name for name in MEASURED if name in old and not is_same(old[name], new.get(name))]
        if not parts:
            found.runs[folder] = "equal"
        elif old["provenance"].get("environments") != new["provenance"].get("environments"):
            found.runs[folder] = "rounded"
        else:
            found.runs[folder] = "changed"
            found.moved.append(f"{what} seed {seed}: same job, other {', '.join(parts)}{largest_change(old, new)}")
    return found


def is_same(old: Any, new: Any) -> bool:
    """Return whether all that the old record has is in the new one, equal to the bit; the new one may have more."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Percentiles are of float32 scores since the coverage that they keep is measured too.
        changed = {"percentile_risk"} if "percentile_coverage" in new.keys() - old.keys() else set()
        return old.keys() <= new.keys() and all(is_same(old[name], new[name]) for name in old.keys() - changed)
    return bool(old == new)


def largest_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the largest change of a risk curve, which is what people look at; empty where none changed."""
    changes = [(0.0, "", 0, 0.0, 0.0)]
    for score in old.get("scores", {}):
        if score in new.get("scores", {}):
            curves = zip(old["scores"][score]["risk"], new["scores"][score]["risk"], strict=True)
            changes += [(abs(a - b), score, index, a, b) for index, (a, b) in enumerate(curves)]
    size, score, index, before, after = max(changes)
    return f"; {score} risk at {index / 2:g} %: {100 * before:.4f} → {100 * after:.4f}" if size else ""


def cells_of(
    manifest: dict[str, Any], entries: list[dict[str, Any]], store: Store
) -> dict[tuple[str, str], tuple[str, Cell]]:
    """Return the name of the column and the cell, by column and row, for some entries.

    The key always has the score: a column's name leaves out the score that its method puts first, which may change.
    """
    columns = load_columns({**manifest, "entries": entries, "columns": []}, store) if entries else []
    cells = {}
    for column in (column for column in columns if not column.is_oracle):
        name = f"{column.name}+{column.score}" if column.published else column.name
        for row in risk_rows(manifest):
            cell = fill_cell(row, column)
            if cell is not None and cell.values:
                cells[name, row.label] = column.name, cell
    return cells


def compare_cells(
    name: str, old: dict[tuple[str, str], tuple[str, Cell]], new: dict[tuple[str, str], tuple[str, Cell]]
) -> Difference:
    """Pair the cells of a table for the test. A cell with more diverged runs has moved in any case."""
    found = Difference()
    for key, (column, cell) in old.items():
        what = f"{column} {key[1]}"
        if key not in new:
            found.gone.append(f"{name} {what}")
            continue
        other = new[key][1]
        found.tested[name, what] = (cell, other)
        if other.diverged > cell.diverged:
            found.moved.append(f"{name} {what} %: {other.missing}, before {cell.missing or 'all there'}")
    return found


def find_moved_cells(tested: dict[tuple[str, str], tuple[Cell, Cell]]) -> Difference:
    """Find cells that differ by Welch's test, Holm-corrected over all of them, and by more than the margin."""
    found, p_values = Difference(), {}
    for key, (old, new) in tested.items():
        p = welch(*(Summary(*mean_std(cell.values), len(cell.values)) for cell in (old, new))).p
        if not isnan(p):
            p_values[key] = p
    if untested := len(tested) - len(p_values):
        found.notes.append(f"{counted(untested, 'cell')} cannot be tested: one seed on a side")
    for key, p in holm(p_values).items():
        old, new = tested[key]
        change = mean_std(new.values)[0] - mean_std(old.values)[0]
        if p < LEVEL and abs(change) > MARGIN:
            texts = [f"{cell.mean}±{cell.std}" for cell in (old, new)]
            line = f"{' '.join(key)} %: {texts[0]} → {texts[1]} ({change:+.2f} points, corrected p = {p:.4f})"
            found.moved.append(line)
    return found
