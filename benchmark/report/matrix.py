"""Show which columns differ from each other, by the exact rank-sum test on AURC for every pair."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from benchmark.measure.statistics import LEVEL, run_test, smallest_p
from benchmark.report.markup import Markup, table_box, tag
from benchmark.tables.columns import Column, split_by_coverage

LARGEST = 40
"""The most columns that a matrix shows."""
SHADES = (0.01, LEVEL, 0.2)
"""A cell is shaded if its p is below one of these; the first gives the strongest shade."""

Values = dict[str, dict[int, float]]


def matrix_section(columns: Sequence[Column]) -> Markup:
    everything = aurc_values(columns)
    if len(everything) < 2:
        return tag("p", "Fewer than two columns have runs: nothing to compare.", class_="note")
    by_mean = sorted(everything, key=lambda name: float(np.mean(list(everything[name].values()))))
    kept = set(by_mean[:LARGEST])
    values = {name: by_seed for name, by_seed in everything.items() if name in kept}
    p_values = pairwise(values)
    names = tag("tr", tag("td"), (tag("th", tag("span", name), scope="col") for name in values))
    rows = (
        tag("tr", tag("th", row, scope="row"), (cell(row, column, values, p_values) for column in values))
        for row in values
    )
    title = "Pairwise p-values on AURC"
    left_out = len(everything) - len(values)
    note = tag("p", f"Left out: {left_out} more with a higher AURC.", class_="note") if left_out else ""
    about = tag("p", tag("strong", title), f": {caption(values, p_values)}", class_="caption")
    return tag("div", about, table_box(names, rows, "matrix", title), note, class_="figure")


def aurc_values(columns: Sequence[Column]) -> Values:
    """Return the AURC by column and seed; a training for a single coverage is a column of its own."""
    values: Values = {}
    for column in split_by_coverage(columns):
        by_seed = {} if column.is_oracle else {r.seed: r.score(column.score).aurc for r in column.records}
        values[column.name] = {seed: aurc for seed, aurc in by_seed.items() if aurc is not None}
    return {name: by_seed for name, by_seed in values.items() if by_seed}


def pairwise(values: Values) -> dict[tuple[str, str], float]:
    """Return the p of each pair of columns, in both orders."""
    p_values = {}
    for a, b in combinations(values, 2):
        outcome = run_test("exact", values[a], values[b])
        if outcome is not None:
            p_values[a, b] = p_values[b, a] = outcome.p
    return p_values


def caption(values: Values, p_values: dict[Any, float]) -> str:
    smallest = min(smallest_p(len(values[a]), len(values[b])) for a, b in combinations(values, 2))
    count = len(p_values) // 2
    below = sum(p < LEVEL for p in p_values.values()) // 2
    result = (
        f"{below} below {LEVEL:g}, where chance alone would give about {count * LEVEL:.2g}"
        if smallest < LEVEL
        else f"with so few runs none can fall below {LEVEL:g}"
    )
    comparisons = f"{count} comparisons" if count > 1 else "one comparison"
    return (
        f"two-sided rank-sum test, exact, {comparisons}, no correction: {result}. Smallest attainable p: "
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
    """Return p with three decimals, without the zero before the point; never 0."""
    return "1" if p > 0.9995 else f"{p:.3f}"[1:] if p >= 0.0005 else f"{p:.0e}"
