"""Draw risk–coverage of clean images beside that of shifted ones or of new classes: a panel for each method."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.base.units import counted
from benchmark.figures.risk_coverage import COVERAGE, FEW
from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.sets.panels import columns_of, make_grid, name_grid
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, colour_of, draw_mean, panel_name, short_name
from benchmark.measure.sets.parts import CLEAN
from benchmark.measure.statistics import Array
from benchmark.tables.columns import Column
from benchmark.tables.sets.panels import kind_of, shift_curves

BESIDE, MOST = 4, 16
"""The most panels beside each other, and on a page."""
HEIGHT = 1.55
"""Inches of a row of panels."""
LOOKS: dict[bool, dict[str, Any]] = {
    True: {"linestyle": "-", "linewidth": 1.3},
    False: {"linestyle": (0, (3.5, 1.4)), "linewidth": 1.3},
}
"""Of clean images, and of others."""
FIRST = round(2 * FEW)
"""Of the points of a curve, the first that is drawn: before it one error among a handful of images makes a peak."""
THIN = {"linewidth": 0.5}
Curves = dict[str, Array]
"""(seeds, coverages) by part."""


def draw(runs: Runs) -> Figure:
    every = {column.name: curves_of(column) for column in columns_of(runs)}
    shown = [column for column in columns_of(runs) if len(every[column.name]) > 1][:MOST]
    if not shown:
        raise NotDrawn("its images are the test images, so there is nothing to set against these")
    rows, beside = make_grid(len(shown), BESIDE)
    figure = runs.new_figure(DOUBLE, 0.3 + HEIGHT * rows, caption(runs, shown))
    grid = figure.subplots(rows, beside, sharex=True, sharey=True, squeeze=False)
    top = highest(every[column.name] for column in shown)
    for axes, column in zip(grid.flat, shown, strict=False):
        draw_column(axes, column, every[column.name])
        axes.set(xlim=(0, 100), ylim=(0, top), xticks=(0, 50, 100))
    name_grid(grid, len(shown), "coverage (%)")
    for axes in grid[:, 0]:
        axes.set_ylabel("selective risk (%)")
    figure.legend(handles=legend_marks(shown), loc="outside upper left", ncols=3, columnspacing=1.5)
    return figure


def curves_of(column: Column) -> Curves:
    return {name: np.array([*by_seed.values()]) for name, by_seed in shift_curves(column).items()}


def draw_column(axes: Axes, column: Column, curves: Curves) -> None:
    """Draw clean images solid, all others together dashed, and each severity thin, without its band."""
    whole = (CLEAN, list(curves)[-1])
    for name, risks in curves.items():
        style = {"color": colour_of(column), **LOOKS[name == CLEAN], **({} if name in whole else THIN)}
        seeds = risks if name in whole else risks.mean(axis=0, keepdims=True)
        draw_mean(axes, COVERAGE[FIRST:], seeds[:, FIRST:], name, style, 0.15)
    panel_name(axes, short_name(column.name, 22))


def highest(curves: Iterable[Curves]) -> float:
    """Return the height of a panel that holds all bands."""
    return 1.04 * max(float(risks[:, FIRST:].max()) for own in curves for risks in own.values())


def legend_marks(shown: Sequence[Column]) -> list[Line2D]:
    names = [*max((shift_curves(column) for column in shown), key=len)]
    others = {"new": "clean images and new classes"}.get(kind_of(shown), "all shifted images")
    marks = [Line2D([], [], color=GREY, label="clean images", **LOOKS[True])]
    marks.append(Line2D([], [], color=GREY, label=others, **LOOKS[False]))
    return marks + ([Line2D([], [], color=GREY, label="each severity", **LOOKS[False] | THIN)] if names[2:] else [])


def caption(runs: Runs, shown: Sequence[Column]) -> list[str]:
    left = len(columns_of(runs)) - len(shown)
    to_keep = ["To keep an image of a new class is an error."] if kind_of(shown) == "new" else []
    return [
        f"{runs.manifest.title}: {seeds_text(shown, '; band: smallest to largest')}.",
        *to_keep,
        *([f"{counted(left, 'column')} more left out."] if left else []),
    ]
