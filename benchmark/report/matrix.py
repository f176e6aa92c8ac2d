"""Which columns differ from which: the exact rank-sum test on AURC for every pair."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from benchmark.columns import Column, single
from benchmark.report.markup import Markup, table_box, tag
from benchmark.stats import LEVEL, run_test, smallest_p

LARGEST = 40
"""Columns that a matrix still shows."""
SHADES = (0.01, LEVEL, 0.2)
"""Below which p a cell is shaded, the first the strongest."""

Values = dict[str, dict[int, float]]


def matrix_section(columns: Sequence[Column]) -> Markup:
    everything = aurc_values(columns)
    if len(everything) < 2:
        return tag("p", "Fewer than two columns have runs: nothing to compare.", class_="note")
    by_mean = sorted(everything, key=lambda name: float(np.mean(list(everything[name].values()))))
    kept = set(by_mean[:LARGEST])
    values = {name: found for name, found in everything.items() if name in kept}
    p_values = pairwise(values)
    names = tag("tr", tag("td"), (tag("th", tag("span", name), scope="col") for name in values))
    rows = (
        tag("tr", tag("th", row, scope="row"), (cell(row, column, values, p_values) for column in values))
        for row in values
    )
    table = tag("table", tag("thead", names), tag("tbody", rows), class_="matrix")
    left_out = len(everything) - len(values)
    return tag(
        "div",
        tag("p", tag("strong", "Pairwise p-values on AURC"), f": {caption(values, p_values)}", class_="caption"),
        table_box(table, "Pairwise p-values on AURC"),
        tag("p", f"Left out: {left_out} more with a higher AURC.", class_="note") if left_out else "",
        class_="figure",
    )


def aurc_values(columns: Sequence[Column]) -> Values:
    """By column and seed; trainings for single coverages stand apart."""
    judged = [column for column in single(columns) if not column.is_oracle]
    found = {column.name: {r["seed"]: r["scores"][column.score]["aurc"] for r in column.records} for column in judged}
    known = {name: {seed: x for seed, x in values.items() if x is not None} for name, values in found.items()}
    return {name: values for name, values in known.items() if values}


def pairwise(values: Values) -> dict[tuple[str, str], float]:
    found = {}
    for a, b in combinations(values, 2):
        outcome = run_test("exact", values[a], values[b])
        if outcome is not None:
            found[a, b] = found[b, a] = outcome.p
    return found


def caption(values: Values, p_values: dict[Any, float]) -> str:
    smallest = min(smallest_p(len(values[a]), len(values[b])) for a, b in combinations(values, 2))
    count = len(p_values) // 2
    below = sum(p < LEVEL for p in p_values.values()) // 2
    found = (
        f"{below} below {LEVEL:g}, where chance alone would give about {count * LEVEL:.2g}"
        if smallest < LEVEL
        else f"with so few runs none can fall below {LEVEL:g}"
    )
    comparisons = f"{count} comparisons" if count > 1 else "one comparison"
    return (
        f"two-sided rank-sum test, exact, {comparisons}, no correction: {found}. Smallest attainable p: "
        f"{smallest:.4f}. ↓ the row's AURC is lower (better) than the column's, ↑ higher, where p is below the "
        "level; the stronger the shade, the smaller p."
    )


def cell(row: str, column: str, values: Values, p_values: dict[tuple[str, str], float]) -> Markup:
    p = p_values.get((row, column))
    if p is None:
        return tag("td", "" if row == column else "–", class_="self")
    lower = np.mean(list(values[row].values())) < np.mean(list(values[column].values()))
    shade = next((index for index, limit in enumerate(SHADES) if p < limit), None)
    arrow = ("↓" if lower else "↑") if p < LEVEL else ""
    class_ = None if shade is None else f"{'low' if lower else 'high'}{shade}"
    return tag("td", arrow, short(p), class_=class_)


def short(p: float) -> str:
    """Three decimals, without the nought; never 0."""
    return "1" if p > 0.9995 else f"{p:.3f}"[1:] if p >= 0.0005 else f"{p:.0e}"
