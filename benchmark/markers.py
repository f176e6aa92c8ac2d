"""Which cells differ from the reference column: the test, Holm's correction, and what n runs can support."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan

from benchmark.cells import Cells, Row
from benchmark.stats import LEVEL, holm, run_test, smallest_p

FAMILIES = {"row": "the columns of a row", "column": "the rows of a column", "table": "the whole table"}
"""What Holm's correction may go over, as a caption calls it."""


def mark(cells: Cells, rows: Sequence[Row], reference: str, test: str, family: str) -> Cells:
    """The cells with p-values and verdicts: how the reference fares against each. `family` is "" for no correction."""
    outcomes = {}
    for key, cell in cells.items():
        ours = cells.get((key[0], reference))
        outcome = run_test(test, ours.by_seed, cell.by_seed) if ours and key[1] != reference else None
        if outcome is not None:
            outcomes[key] = outcome
    raw = {key: outcome.p for key, outcome in outcomes.items()}
    corrected = correct(raw, family)
    sizes = family_sizes(raw, family)
    lower_is_better = {row.label: row.lower_is_better for row in rows}
    marked = dict(cells)
    for key, outcome in outcomes.items():
        smallest = smallest_p(len(cells[key[0], reference].values), len(cells[key].values), test)
        verdict = "tie"
        if corrected[key] < LEVEL and smallest * sizes[key] < LEVEL:
            verdict = "better" if (outcome.lean > 0) == lower_is_better[key[0]] else "worse"
        shown = corrected[key] if family else float("nan")
        marked[key] = replace(cells[key], verdict=verdict, p=outcome.p, corrected_p=shown)
    return marked


def families(keys: Iterable[tuple[str, str]], family: str) -> list[list[tuple[str, str]]]:
    """The comparisons that are corrected together; each by itself where nothing is corrected."""
    groups: dict[object, list[tuple[str, str]]] = {}
    for row, column in keys:
        group = {"row": row, "column": column, "table": None, "": (row, column)}[family]
        groups.setdefault(group, []).append((row, column))
    return list(groups.values())


def family_sizes(keys: Iterable[tuple[str, str]], family: str) -> dict[tuple[str, str], int]:
    """With how many comparisons, itself included, each is corrected."""
    return {key: len(members) for members in families(keys, family) for key in members}


def compared(cells: Cells) -> list[tuple[str, str]]:
    """The cells that were compared with the reference."""
    return [key for key, cell in cells.items() if not isnan(cell.p)]


def correct(p_values: dict[tuple[str, str], float], family: str) -> dict[tuple[str, str], float]:
    """Holm's correction in each family."""
    corrected: dict[tuple[str, str], float] = {}
    for members in families(p_values, family):
        corrected |= holm({key: p_values[key] for key in members})
    return corrected
