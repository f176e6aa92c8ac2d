"""Which cells differ from the reference column: the test, Holm's correction, and what n runs can support."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan

from benchmark.cells import Cells, Row
from benchmark.stats import LEVEL, Outcome, holm, run_test, smallest_of

FAMILIES = {"row": "the columns of a row", "column": "the rows of a column", "table": "the whole table"}
"""What Holm's correction may go over, as a caption calls it."""


Key = tuple[str, str]


def mark(cells: Cells, rows: Sequence[Row], reference: str, test: str, family: str) -> Cells:
    """The cells with p-values and verdicts: how the reference fares against each. `family` is "" for no correction."""
    return judge(cells, run_tests(cells, reference, test), rows, reference, test, family)


def run_tests(cells: Cells, reference: str, test: str) -> dict[Key, Outcome]:
    """Of every cell against the reference in its row, where there is something to compare."""
    outcomes = {}
    for key, cell in cells.items():
        ours = cells.get((key[0], reference))
        outcome = run_test(test, ours.by_seed, cell.by_seed) if ours and key[1] != reference else None
        if outcome is not None:
            outcomes[key] = outcome
    return outcomes


def judge(
    cells: Cells, outcomes: dict[Key, Outcome], rows: Sequence[Row], reference: str, test: str, family: str
) -> Cells:
    """Verdicts from outcomes, after a correction. Never more than the numbers of runs can support."""
    corrected = correct({key: outcome.p for key, outcome in outcomes.items()}, family)
    at_best = attainable(cells, outcomes, reference, test, family)
    lower_is_better = {row.label: row.lower_is_better for row in rows}
    marked = dict(cells)
    for key, outcome in outcomes.items():
        verdict = "tie"
        if max(corrected[key], at_best[key]) < LEVEL:
            verdict = "better" if (outcome.lean > 0) == lower_is_better[key[0]] else "worse"
        shown = corrected[key] if family else float("nan")
        marked[key] = replace(cells[key], verdict=verdict, p=outcome.p, corrected_p=shown)
    return marked


def attainable(cells: Cells, keys: Iterable[Key], reference: str, test: str, family: str) -> dict[Key, float]:
    """The corrected p of each comparison if all were as clear as their numbers of runs allow."""
    smallest = {key: smallest_of(test, cells[key[0], reference].by_seed, cells[key].by_seed) for key in keys}
    return correct(smallest, family)


def families(keys: Iterable[Key], family: str) -> list[list[Key]]:
    """The comparisons that are corrected together; each by itself where nothing is corrected."""
    groups: dict[object, list[Key]] = {}
    for row, column in keys:
        group = {"row": row, "column": column, "table": None, "": (row, column)}[family]
        groups.setdefault(group, []).append((row, column))
    return list(groups.values())


def family_sizes(keys: Iterable[Key], family: str) -> dict[Key, int]:
    """With how many comparisons, itself included, each is corrected."""
    return {key: len(members) for members in families(keys, family) for key in members}


def compared(cells: Cells) -> list[Key]:
    """The cells that were compared with the reference."""
    return [key for key, cell in cells.items() if not isnan(cell.p)]


def correct(p_values: dict[Key, float], family: str) -> dict[Key, float]:
    """Holm's correction in each family."""
    corrected: dict[Key, float] = {}
    for members in families(p_values, family):
        corrected |= holm({key: p_values[key] for key in members})
    return corrected
