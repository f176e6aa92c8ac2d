"""Mark the cells that differ from the reference: the test, Holm's correction, and what n runs can support."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan, nan

from benchmark.measure.bootstrap import bootstrap_test
from benchmark.measure.statistics import LEVEL, Outcome, holm, run_test, smallest_p_for
from benchmark.store.manifest import Manifest
from benchmark.tables.model import Cell, Cells, Row

FAMILIES = {"row": "the columns of a row", "column": "the rows of a column", "table": "the whole table"}
"""What Holm's correction may cover, in the words of a caption."""
Key = tuple[str, str]


def test_of(manifest: Manifest) -> str:
    """Return the test behind the markers of a table: over seeds, or over test images where there is one run of each."""
    if manifest.judged_by_images:
        return "bootstrap"
    return "exact" if manifest.test == "paired" and not manifest.paired else manifest.test


def mark(cells: Cells, rows: Sequence[Row], reference: str, test: str, family: str) -> Cells:
    """Add p-values and verdicts to the cells: is the reference better or worse? `family` is "" for no correction."""
    return judge(cells, run_tests(cells, reference, test), rows, reference, test, family)


def run_tests(cells: Cells, reference: str, test: str) -> dict[Key, Outcome]:
    """Test every cell against the reference in its row, if both have values to compare."""
    outcomes = {}
    for key, cell in cells.items():
        ours = cells.get((key[0], reference))
        outcome = compare_cells(test, ours, cell) if ours and key[1] != reference else None
        if outcome is not None:
            outcomes[key] = outcome
    return outcomes


def compare_cells(test: str, ours: Cell, theirs: Cell) -> Outcome | None:
    """Test the reference against another cell: by their runs, or by their values in resampled test images."""
    if test != "bootstrap":
        return run_test(test, ours.by_seed, theirs.by_seed)
    return None if ours.draws is None or theirs.draws is None else bootstrap_test(ours.draws, theirs.draws)


def judge(
    cells: Cells, outcomes: dict[Key, Outcome], rows: Sequence[Row], reference: str, test: str, family: str
) -> Cells:
    """Add corrected p-values and verdicts to the cells. A verdict never claims more than the runs can support."""
    corrected = correct({key: outcome.p for key, outcome in outcomes.items()}, family)
    reachable = reachable_p(cells, outcomes, reference, test, family)
    lower_is_better = {row.label: row.lower_is_better for row in rows}
    marked = dict(cells)
    for key, outcome in outcomes.items():
        verdict = "tie"
        if max(corrected[key], reachable[key]) < LEVEL:
            verdict = "better" if (outcome.direction > 0) == lower_is_better[key[0]] else "worse"
        corrected_p = corrected[key] if family else nan
        marked[key] = replace(cells[key], verdict=verdict, p=outcome.p, corrected_p=corrected_p)
    return marked


def reachable_p(cells: Cells, keys: Iterable[Key], reference: str, test: str, family: str) -> dict[Key, float]:
    """Return the smallest corrected p that is reachable with this many seeds, by comparison."""
    smallest = {key: smallest_p_for(test, cells[key[0], reference].by_seed, cells[key].by_seed) for key in keys}
    return correct(smallest, family)


def group_by_family(keys: Iterable[Key], family: str) -> list[list[Key]]:
    """Group the comparisons that are corrected together; without a correction each is alone."""
    groups: dict[object, list[Key]] = {}
    for row, column in keys:
        group = {"row": row, "column": column, "table": None, "": (row, column)}[family]
        groups.setdefault(group, []).append((row, column))
    return list(groups.values())


def family_sizes(keys: Iterable[Key], family: str) -> dict[Key, int]:
    """Return the size of the group in which each comparison is corrected."""
    return {key: len(members) for members in group_by_family(keys, family) for key in members}


def compared_keys(cells: Cells) -> list[Key]:
    """Return the keys of the cells that were compared with the reference."""
    return [key for key, cell in cells.items() if not isnan(cell.p)]


def correct(p_values: dict[Key, float], family: str) -> dict[Key, float]:
    """Apply Holm's correction in each family."""
    corrected: dict[Key, float] = {}
    for members in group_by_family(p_values, family):
        corrected |= holm({key: p_values[key] for key in members})
    return corrected
