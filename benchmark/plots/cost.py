"""What a run costs against what it brings: seconds and peak memory of a training beside its AURC."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmark.columns import Column, single, some
from benchmark.plots.labels import label_points
from benchmark.plots.runs import Runs, seeds_text
from benchmark.plots.style import COLOURS, DOUBLE, REFERENCE, NotDrawn, new_figure, panel_name, short_name
from benchmark.spent import peak_bytes
from benchmark.stats import mean_std
from benchmark.tables import MEASURES, run_values

AURC = MEASURES[0]
WIDE = 8
"""Values that span more than this factor get a log axis."""
COSTS: dict[str, tuple[str, Callable[[dict[str, Any]], float | None]]] = {
    "(a) time": ("seconds per run", lambda provenance: provenance.get("seconds")),
    "(b) memory": (
        "peak memory of a run (MiB)",
        lambda provenance: None if (peak := peak_bytes(provenance)) is None else peak / 2**20,
    ),
}


@dataclass(frozen=True)
class Point:
    """Mean and standard deviation over seeds of both axes."""

    name: str
    cost: tuple[float, float]
    aurc: tuple[float, float]


def draw(runs: Runs) -> Figure:
    columns = [column for column in single(runs.judged) if column.published and column.records]
    panels = {name: points_of(columns, value) for name, (_, value) in COSTS.items()}
    known = {name: points for name, points in panels.items() if points}
    if not known:
        raise NotDrawn("no record says what its run has cost")
    figure = new_figure(DOUBLE, 2.7, caption(runs, columns, panels))
    for axes, (name, points) in zip(np.ravel(figure.subplots(1, len(known))), known.items(), strict=True):
        draw_panel(axes, points, runs.manifest["reference"])
        axes.set_xlabel(COSTS[name][0])
        axes.set_ylabel("AURC ×10³")
        if len(known) > 1:
            panel_name(axes, name)
    for axes, points in zip(list(figure.axes), known.values(), strict=True):
        dots = [(point.cost[0], point.aurc[0]) for point in points]
        label_points(figure, axes, dots, [short_name(point.name, 18) for point in points], list(map(bars, points)))
    return figure


def points_of(columns: Sequence[Column], value: Callable[[dict[str, Any]], float | None]) -> list[Point]:
    found = []
    for column in columns:
        costs = [cost for record in column.records if (cost := value(record["provenance"])) is not None]
        if costs:
            found.append(Point(column.name, mean_std(costs), mean_std(list(run_values(AURC, column).values()))))
    return found


def bars(point: Point) -> tuple[float, float, float, float]:
    (x, dx), (y, dy) = point.cost, point.aurc
    return max(x - dx, 1e-9), y - dy, x + dx, y + dy


def draw_panel(axes: Axes, points: Sequence[Point], reference: str) -> None:
    for point in points:
        colour = REFERENCE if point.name == reference else COLOURS[0]
        marker = "D" if point.name == reference else "o"
        axes.errorbar(
            *(point.cost[0], point.aurc[0]),
            xerr=point.cost[1] or None,
            yerr=point.aurc[1] or None,
            fmt=marker,
            color=colour,
            markersize=4,
            elinewidth=0.7,
            zorder=3,
        )
    if spans_much([point.cost[0] for point in points]):
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
    if spans_much([point.aurc[0] for point in points]):
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    axes.margins(0.14, 0.16)


def spans_much(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > WIDE * min(values)


def plain_numbers(axis: XAxis | YAxis) -> None:
    """1, 2, 5, 10 … along a log scale."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def caption(runs: Runs, columns: Sequence[Column], panels: dict[str, list[Point]]) -> list[str]:
    several = any(len(column.records) > 1 for column in columns)
    spread = " with standard deviations" if several else ""
    marked = [runs.manifest["reference"]] if any(c.name == runs.manifest["reference"] for c in columns) else []
    sentences = [
        f"{runs.manifest['title']}: {seeds_text(columns)}{spread}, each method read with its published score; lower "
        "left is better.",
        *(f"Diamond: {name}." for name in marked),
        "Time includes a warm-up that several methods share, and for a combination the trainings of all its members.",
    ]
    if panels["(b) memory"]:
        sentences.append("Memory: the most that tensors took on a GPU.")
    sentences += runs.remarks
    for name, points in panels.items():
        lacking = [column.name for column in columns if column.name not in {point.name for point in points}]
        if points and lacking:
            sentences.append(f"{some(lacking)}: no {name[4:]} in the records.")
    return sentences
