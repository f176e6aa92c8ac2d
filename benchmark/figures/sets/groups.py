"""Draw a grid of groups: in each the risk of all images and of those that are kept, a row for each method."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.base.units import counted
from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.sets.panels import columns_of, make_grid, name_grid
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, colour_of, panel_name, short_name
from benchmark.tables.columns import Column
from benchmark.tables.sets.panels import (
    Group,
    choose_groups,
    groups_of,
    kind_of,
    masked,
    wanted_coverages,
    worst_groups,
)

BESIDE, MOST = 4, 15
"""The most panels beside each other, and of groups in all."""
LINE = 0.15
"""Inches from one method to the next."""
WORST, OTHER = "*", "o"
ROOM = 1.15
"""Length of the axis, as a multiple of the largest value: beyond stands what is kept."""
AT_END: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 6, "color": GREY}
SIZES = {WORST: 7.0, OTHER: 3.6}


def draw(runs: Runs) -> Figure:
    shown = columns_of(runs)
    if kind_of(shown) != "groups":
        raise NotDrawn("its images are in no groups")
    coverage = (wanted_coverages(shown) or [100.0])[-1]
    every = groups_of(shown, coverage)
    groups, worst = choose_groups(every, MOST), worst_groups(every)
    rows, beside = make_grid(len(groups), BESIDE)
    left = len(every) - len(groups)
    figure = runs.new_figure(DOUBLE, 0.3 + rows * (0.5 + LINE * len(shown)), caption(runs, shown, coverage, left))
    panels = figure.subplots(rows, beside, sharex=True, sharey=True, squeeze=False)
    for axes, group in zip(panels.flat, groups, strict=False):
        draw_group(axes, group, shown, worst)
    name_grid(panels, len(groups), "risk (%)")
    right = panels[0, 0].get_xlim()[1]
    panels[0, 0].set_xlim(-0.04 * right, ROOM * right)
    figure.legend(handles=legend_marks(coverage), loc="outside upper left", ncols=4, columnspacing=1.5)
    return figure


def draw_group(axes: Axes, group: Group, shown: Sequence[Column], worst: dict[str, str]) -> None:
    """Draw a line from the risk of all images, which is open, to that of the kept ones; at its end what is kept."""
    for place, column in enumerate(shown):
        mean, std = (f(masked(group.values[column.name]), axis=0) for f in (np.ma.mean, np.ma.std))
        mark = WORST if worst.get(column.name) == group.name else OTHER
        colour = colour_of(column)
        axes.plot(mean[:2], [place, place], color=colour, linewidth=0.8, alpha=0.35)
        axes.plot(mean[0], place, OTHER, color=colour, markerfacecolor="white", markersize=SIZES[OTHER])
        axes.errorbar(mean[1], place, xerr=std[1], fmt=mark, color=colour, markersize=SIZES[mark], elinewidth=1.0)
        axes.text(1, place, f"{mean[2]:.0f}", transform=axes.get_yaxis_transform(), **AT_END)
    panel_name(axes, short_name(group.name, 24))
    axes.set_yticks(range(len(shown)), [short_name(column.name, 18) for column in shown])
    axes.set(ylim=(len(shown) - 0.4, -0.6))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def legend_marks(coverage: float) -> list[Line2D]:
    def dot(marker: str, label: str, fill: str = GREY) -> Line2D:
        return Line2D([], [], marker=marker, linestyle="", color=GREY, markerfacecolor=fill, label=label)

    kept = f"images kept at {coverage:g} % coverage"
    return [dot(OTHER, "all images", "white"), dot(OTHER, kept), dot(WORST, "the same, in the worst group")]


def caption(runs: Runs, shown: Sequence[Column], coverage: float, left: int) -> list[str]:
    more = f"Shown are the {MOST} groups with the largest risks; {counted(left, 'group')} more left out."
    return [
        f"{runs.manifest.title}: {seeds_text(shown, ', bars: standard deviation')}; lower is better.",
        f"One threshold keeps {coverage:g} % of all test images; numbers at the right: the share of each group that it "
        "keeps, in per cent.",
        *([more] if left else []),
    ]
