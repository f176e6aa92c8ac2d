"""Draw what a training costs and how good it is: AURC, seconds and peak memory, a line for each method.

Names stand beside the lines and not among the points, so that any number of methods can be read.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.style import DOUBLE, NotDrawn, colour_of, panel_name, short_name
from benchmark.measure.statistics import mean_std
from benchmark.store.provenance import Provenance
from benchmark.tables.build import MEASURES, run_values
from benchmark.tables.columns import Column, abbreviate, split_by_coverage

AURC = MEASURES[0]
LINE = 0.165
"""Inches from one method to the next."""
ROOM = 1.06
"""Length of an axis, as a multiple of the largest value that it shows."""
WIDE = 8
"""Values that span more than this factor get a log axis."""
COSTS: dict[str, tuple[str, Callable[[Provenance], float | None]]] = {
    "time": ("seconds per run", lambda provenance: provenance.seconds),
    "memory": (
        "peak memory of a run (MiB)",
        lambda provenance: None if (peak := provenance.peak_on_gpu) is None else peak / 2**20,
    ),
}
Spread = tuple[float, float]
"""Mean and standard deviation over seeds."""


def draw(runs: Runs) -> Figure:
    columns = [column for column in split_by_coverage(runs.judged) if column.published and run_values(AURC, column)]
    gains = {column.name: mean_std(list(run_values(AURC, column).values())) for column in columns}
    columns.sort(key=lambda column: gains[column.name])
    costs = {name: spreads for name, (_, value) in COSTS.items() if (spreads := costs_of(columns, value))}
    if not costs:
        raise NotDrawn("no record says what its run has cost")
    figure = runs.new_figure(DOUBLE, 0.75 + LINE * len(columns), caption(runs, columns, costs))
    panels = {"AURC": (AURC.label, gains)} | {name: (COSTS[name][0], spreads) for name, spreads in costs.items()}
    every = np.ravel(figure.subplots(1, len(panels), sharey=True))
    for axes, letter, (name, (label, spreads)) in zip(every, "abc", panels.items(), strict=False):
        draw_panel(axes, columns, spreads, runs.manifest.reference)
        panel_name(axes, f"({letter}) {name}")
        axes.set_xlabel(label)
        if name in costs and axes.get_xscale() == "linear":
            axes.set_xlim(0, ROOM * max(map(sum, spreads.values())))
    every[0].set_yticks(range(len(columns)), [short_name(column.name, 24) for column in columns])
    every[0].set_ylim(len(columns) - 0.4, -0.6)
    return figure


def costs_of(columns: Sequence[Column], value: Callable[[Provenance], float | None]) -> dict[str, Spread]:
    """Return mean and deviation of a cost by column, for the columns whose records have it."""
    spreads = {}
    for column in columns:
        costs = [cost for record in column.records if (cost := value(record.provenance)) is not None]
        if costs:
            spreads[column.name] = mean_std(costs)
    return spreads


def draw_panel(axes: Axes, columns: Sequence[Column], spreads: dict[str, Spread], reference: str) -> None:
    for place, column in enumerate(columns):
        if column.name in spreads:
            mean, std = spreads[column.name]
            mark = "D" if column.name == reference else "o"
            style: dict[str, Any] = {"color": colour_of(column), "markersize": 4, "elinewidth": 0.8, "zorder": 3}
            axes.errorbar(mean, place, xerr=std or None, fmt=mark, **style)
    means = [mean for mean, _ in spreads.values()]
    if min(means) > 0 and max(means) > WIDE * min(means):
        axes.set_xscale("log")
        # Numbers 1, 2, 5, 10 … are read more easily than powers of ten.
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)


def caption(runs: Runs, columns: Sequence[Column], costs: dict[str, dict[str, Spread]]) -> list[str]:
    reference = runs.manifest.reference
    seeds = seeds_text(columns, " with standard deviations")
    lacking = {name: [column.name for column in columns if column.name not in costs[name]] for name in costs}
    return [
        f"{runs.manifest.title}: {seeds}, each method read with its published score; lower is better.",
        *([f"Diamond: {reference}."] if any(column.name == reference for column in columns) else []),
        "Time includes a warm-up that several methods share, and for a combination the trainings of all its members.",
        *(["Memory: the most that tensors took on a GPU."] if "memory" in costs else []),
        *(f"{abbreviate(names)}: no {name} in the records." for name, names in lacking.items() if names),
    ]
