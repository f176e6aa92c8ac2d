"""What moved between two results folders: equal jobs to the bit, others beyond chance and a margin.

Another kind of machine or another torch rounds otherwise: its runs are compared as those of other jobs are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from benchmark.cells import Cell, Row
from benchmark.columns import Column, load_columns
from benchmark.stats import LEVEL, Summary, holm, mean_std, welch
from benchmark.store import Store, folder_of
from benchmark.tables import complete, fill_cell, risk_rows
from benchmark.units import counted

MARGIN = 0.1
"""In points of risk: less is no news."""
MEASURED = ("classifier", "scores", "num_test", "at_epochs", "facts", "diverged")
"""What two records of one job and seed must have in common."""


@dataclass
class Difference:
    moved: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """What only the old folder has."""
    notes: list[str] = field(default_factory=list)
    equal_runs: int = 0
    changed_runs: int = 0
    rounded_runs: int = 0
    """Of the same job, but made elsewhere, and not equal to the bit."""
    tested: dict[tuple[str, str], tuple[Cell, Cell]] = field(default_factory=dict)
    """Cells of jobs or machines that are not the same, by table and what they are called."""


def compare_folders(old: Store, new: Store) -> Difference:
    found, seen = Difference(), set[Path]()
    tables = [named(store.manifests(), "") | named(store.paper_manifests(), "paper/") for store in (old, new)]
    for name, ours in tables[0].items():
        if name not in tables[1]:
            found.gone.append(name)
            continue
        compare_tables(name, (complete(ours), complete(tables[1][name])), (old, new), found, seen)
    found.notes += [f"{name}: new" for name in tables[1] if name not in tables[0]]
    found.moved += moved_cells(found)
    return found


def named(manifests: list[dict[str, Any]], prefix: str) -> dict[str, dict[str, Any]]:
    return {prefix + manifest["name"]: manifest for manifest in manifests}


def compare_tables(
    name: str,
    manifests: tuple[dict[str, Any], dict[str, Any]],
    stores: tuple[Store, Store],
    found: Difference,
    seen: set[Path],
) -> None:
    """Entries with the same job by their records, the rest by their cells."""
    old, new = ({entry_key(e): e for e in m["entries"]} for m in manifests)
    found.gone += [f"{name} {label(key)}" for key in old if key not in new]
    found.notes += [f"{name} {label(key)}: new" for key in new if key not in old]
    changed = []
    for key in (key for key in old if key in new):
        common = sorted(set(old[key]["seeds"]) & set(new[key]["seeds"]))
        lost = sorted(set(old[key]["seeds"]) - set(new[key]["seeds"]))
        if lost and common:
            found.gone.append(f"{name} {label(key)} seed {', '.join(map(str, lost))}")
        if old[key]["job"] != new[key]["job"] or not common:
            changed.append(key)
            continue
        rounded = False
        for seed in common:
            folder = folder_of(manifests[0]["task"], old[key]["method"], old[key]["job"], seed)
            if folder not in seen:
                seen.add(folder)
                rounded |= compare_runs(f"{name} {label(key)} seed {seed}", folder, stores, found)
        if rounded:
            changed.append(key)
    cells = cells_of(manifests[0], [old[key] for key in changed], stores[0])
    others = cells_of(manifests[1], [new[key] for key in changed], stores[1])
    for place, (shown, cell) in cells.items():
        what = f"{shown} {place[1]}"
        if place not in others:
            found.gone.append(f"{name} {what}")
            continue
        other = others[place][1]
        found.tested[name, what] = (cell, other)
        if other.diverged > cell.diverged:
            found.moved.append(f"{name} {what} %: {other.missing}, before {cell.missing or 'all there'}")


def entry_key(entry: dict[str, Any]) -> tuple[str, float | None]:
    return entry["label"], entry.get("coverage")


def label(key: tuple[str, float | None]) -> str:
    return key[0] if key[1] is None else f"{key[0]}@{key[1]:g}"


def compare_runs(what: str, folder: Path, stores: tuple[Store, Store], found: Difference) -> bool:
    """True if they differ and were made in different places: then their cells must say whether anything moved."""
    old, new = (store.read_record(folder) for store in stores)
    if old is None or new is None:
        if old is not None:
            found.gone.append(what)
        return False
    parts = [name for name in MEASURED if name in old and not same(old[name], new.get(name))]
    if not parts:
        found.equal_runs += 1
        return False
    if old["provenance"].get("environments") != new["provenance"].get("environments"):
        found.rounded_runs += 1
        return True
    found.changed_runs += 1
    found.moved.append(f"{what}: same job, other {', '.join(parts)}{first_change(old, new)}")
    return False


def same(old: Any, new: Any) -> bool:
    """Equal to the bit, and nothing lost: a measure that only the new one takes is no difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Percentiles are of float32 scores since the coverage that they keep is measured too.
        changed = {"percentile_risk"} if "percentile_coverage" in new.keys() - old.keys() else set()
        return old.keys() <= new.keys() and all(same(old[name], new[name]) for name in old.keys() - changed)
    return bool(old == new)


def first_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The largest change of a risk curve, which is what people look at."""
    changes = [
        (abs(a - b), score, index, a, b)
        for score in old.get("scores", {})
        if score in new.get("scores", {})
        for index, (a, b) in enumerate(zip(old["scores"][score]["risk"], new["scores"][score]["risk"], strict=True))
    ]
    largest = max(changes, default=(0.0, "", 0, 0.0, 0.0))
    if not largest[0]:
        return ""
    return f"; {largest[1]} risk at {largest[2] / 2:g} %: {100 * largest[3]:.4f} → {100 * largest[4]:.4f}"


def cells_of(
    manifest: dict[str, Any], entries: list[dict[str, Any]], store: Store
) -> dict[tuple[str, str], tuple[str, Cell]]:
    """Of some entries, by column and row: the column's name and its cell.

    Columns go by their score: which one a method puts first, and so leaves out of its name, may change.
    """
    columns = load_columns({**manifest, "entries": entries, "columns": []}, store) if entries else []
    found = {}
    for column, row in pairs(columns, risk_rows(manifest)):
        cell = fill_cell(row, column)
        if cell is not None and cell.values:
            by_score = f"{column.name}+{column.score}" if column.published else column.name
            found[by_score, row.label] = column.name, cell
    return found


def pairs(columns: list[Column], rows: list[Row]) -> Iterator[tuple[Column, Row]]:
    return ((column, row) for column in columns for row in rows if not column.is_oracle)


def moved_cells(found: Difference) -> list[str]:
    """Cells that differ by Welch's test with Holm's correction over all of them, and by more than the margin."""
    p_values = {}
    for key, (old, new) in found.tested.items():
        p = welch(*(Summary(*mean_std(cell.values), len(cell.values)) for cell in (old, new))).p
        if not isnan(p):
            p_values[key] = p
    if len(p_values) < len(found.tested):
        found.notes.append(f"{counted(len(found.tested) - len(p_values), 'cell')} cannot be tested: one seed on a side")
    corrected, moved = holm(p_values), []
    for key, p in corrected.items():
        old, new = found.tested[key]
        change = mean_std(new.values)[0] - mean_std(old.values)[0]
        if p < LEVEL and abs(change) > MARGIN:
            texts = [f"{cell.mean}±{cell.std}" for cell in (old, new)]
            moved.append(f"{' '.join(key)} %: {texts[0]} → {texts[1]} ({change:+.2f} points, corrected p = {p:.4f})")
    return moved
