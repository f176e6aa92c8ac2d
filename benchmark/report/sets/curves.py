"""Draw risk–coverage of clean images beside that of shifted ones or of new classes: a small plot for each column."""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmark.measure.sets.parts import CLEAN
from benchmark.measure.statistics import Array
from benchmark.report.curves import Curve, curve_data
from benchmark.report.markup import Markup
from benchmark.report.plot import View, x_axis, y_axis
from benchmark.report.sets.panels import SMALL, line, small_view
from benchmark.tables.columns import Column
from benchmark.tables.sets.panels import kind_of, severities, shift_curves

EVERY = 4
"""Of the points of a curve, every fourth is shown: whole plots for each column would make the page large."""
FIRST, LAST = 1, 200 // EVERY
STEADY = 3
"""Before this point a single error can be higher than the rest: it does not set the height."""
MOST = 24
"""The most plots."""
DASHES, NONE = "6 3", None


def curve_views(legend: Sequence[Curve]) -> tuple[str, str, list[Markup]]:
    """Return heading, note and plots."""
    shown = list(enumerate(legend))[:MOST]
    every = {entry: parts for entry, curve in shown if (parts := parts_of(curve))}
    risks = [curve.band(step)[2] for parts in every.values() for curve in parts.values() for step in curve.values
             if step >= STEADY]  # fmt: skip
    view = View("", FIRST, LAST, 1.04 * max(risks, default=0.0) or 1.0, SMALL)
    title, note = titled([curve.column for curve in legend])
    left = f" Shown are the first {MOST} columns of {len(legend)}." if len(legend) > MOST else ""
    return title, note + left, [column_view(parts, entry, view) for entry, parts in every.items()]


def titled(columns: Sequence[Column]) -> tuple[str, str]:
    """Return a heading, and a note that says what the lines are."""
    if kind_of(columns) == "new":
        return "Clean images beside new classes", "Solid: clean images; dashed: these and new classes together."
    thin = "; thin: each severity" if severities(columns) else ""
    return "Clean images beside shifted ones", f"Solid: clean images; dashed: all shifted ones{thin}."


def parts_of(curve: Curve) -> dict[str, Curve]:
    """Return the curves of a column by part: clean images first, all others together last."""
    return {
        name: Curve(curve.column, by_step(by_seed), is_reference=False)
        for name, by_seed in shift_curves(curve.column).items()
    }


def by_step(by_seed: Mapping[int, Array]) -> dict[int, dict[str, float]]:
    rounded = {str(seed): np.round(curve[::EVERY], 2).tolist() for seed, curve in by_seed.items()}
    return {step: {seed: risks[step] for seed, risks in rounded.items()} for step in range(LAST + 1)}


def column_view(parts: Mapping[str, Curve], entry: int, view: View) -> Markup:
    thin = list(parts)[1:-1]
    lines = [
        line(curve, entry, view, NONE if name == CLEAN else DASHES, "thin" if name in thin else "")
        for name, curve in parts.items()
    ]
    marks = {2 * coverage / EVERY: f"{coverage:g}" for coverage in (25, 50, 75, 100)}
    axes = [*x_axis(view, marks, "coverage (%)"), *y_axis(view, "selective risk (%)")]
    name = next(iter(parts.values())).column.name
    data = {
        "lines": [curve_data(curve) | {"name": f"{name}, {part}", "entry": entry} for part, curve in parts.items()],
        "places": [f"coverage {EVERY / 2 * step:g} %" for step in range(LAST + 1)],
    }
    return small_view(name, view, axes, lines, data, many=False)
