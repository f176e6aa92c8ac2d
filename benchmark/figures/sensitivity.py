"""How the outcome depends on one setting: the published sensitivity tables, with our runs and the published values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.cells import Row
from benchmark.columns import Column, some
from benchmark.figures import published_figures
from benchmark.plots.runs import Runs, seeds_text
from benchmark.plots.style import COLOURS, DOUBLE, GREY, NotDrawn, panel_name
from benchmark.tables import MEASURES, curve_of, curve_value, run_values

COVERAGES = (100, 80, 50)
WIDE = 100
"""Settings that span more than this factor lie on a log axis."""
CROWDED = 0.05
"""Settings closer than this share of the axis would run into each other, and are spaced evenly instead."""


@dataclass(frozen=True)
class Axis:
    """Where the settings lie, and how this is called."""

    kind: str
    places: tuple[float, ...]


def draw(runs: Runs) -> Figure:
    columns = [column for column in runs.judged if setting_of(column.name) is not None]
    if not columns:
        raise NotDrawn("none of its columns has a run")
    settings = [setting_of(column.name) or 0.0 for column in columns]
    axis = axis_of(settings)
    rows = [MEASURES[0], *(Row(f"{c}", curve_value(curve_of(runs.manifest), c), coverage=c) for c in COVERAGES)]
    figure = runs.new_figure(DOUBLE, 1.85, caption(runs, columns))
    drawn_published = False
    for axes, row in zip(figure.subplots(1, len(rows)), rows, strict=True):
        draw_ours(axes, row, columns, axis, runs.manifest["reference"])
        drawn_published |= draw_published(axes, row, columns, axis, runs.manifest)
        axes.set_xticks(axis.places, [column.name.partition("=")[2] for column in columns])
        if len(columns) > 4:
            axes.tick_params(axis="x", rotation=40)
        axes.set_xlabel(f"{columns[0].name.partition('=')[0]}{axis.kind}")
        axes.margins(x=0.1, y=0.15)
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
        panel_name(axes, row.label if row.coverage is None else f"risk (%), {row.coverage:g} % coverage")
    if drawn_published:
        handles, labels = figure.axes[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
    return figure


def setting_of(name: str) -> float | None:
    """The number after '=' in a column's name."""
    found = re.search(r"=\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)$", name)
    return float(found[1]) if found else None


def axis_of(settings: Sequence[float]) -> Axis:
    """Linear; log where the positive settings span much, with 0 a step below; even where they would be crowded."""
    positive = sorted(value for value in settings if value > 0)
    if positive and min(settings) >= 0 and positive[-1] > WIDE * positive[0]:
        logs = [log10(value) for value in positive]
        below = logs[0] - (logs[-1] - logs[0]) / max(len(logs) - 1, 1)
        return Axis(" (log scale)", tuple(log10(value) if value > 0 else below for value in settings))
    ordered = sorted(settings)
    span = ordered[-1] - ordered[0]
    if any(b - a < CROWDED * span for a, b in pairwise(ordered)):
        return Axis(" (evenly spaced)", tuple(float(ordered.index(value)) for value in settings))
    return Axis("", tuple(settings))


def draw_ours(axes: Axes, row: Row, columns: Sequence[Column], axis: Axis, reference: str) -> None:
    """The setting of the main table stands out."""
    found = [list(run_values(row, column).values()) for column in columns]
    line = sorted((x, float(np.mean(v)), float(np.std(v))) for x, v in zip(axis.places, found, strict=True) if v)
    x, means, stds = (list(part) for part in zip(*line, strict=True)) if line else ([], [], [])
    axes.errorbar(x, means, yerr=stds, fmt="o-", color=COLOURS[1], markersize=3.6, elinewidth=0.8, label="ours")
    for place, column, values in zip(axis.places, columns, found, strict=True):
        if column.name == reference and values:
            axes.plot([place], [np.mean(values)], "D", color=COLOURS[0], markersize=5, zorder=4)


def draw_published(axes: Axes, row: Row, columns: Sequence[Column], axis: Axis, manifest: dict[str, Any]) -> bool:
    """Hollow marks for what was published, of the columns that can be compared; whether there was one."""
    cells = published_figures()[manifest["published"]].cells
    comparable = [
        (x, c.name) for x, c in zip(axis.places, columns, strict=True) if c.name not in manifest["incomparable"]
    ]
    found = [
        (x, cells[int(row.coverage), name])
        for x, name in comparable
        if row.coverage and (int(row.coverage), name) in cells
    ]
    if not found:
        return False
    shift = 0.02 * (max(axis.places) - min(axis.places))
    axes.errorbar(
        [x + shift for x, _ in found],
        [cell.mean for _, cell in found],
        yerr=[cell.std for _, cell in found],
        fmt="s",
        color=GREY,
        markerfacecolor="white",
        markersize=4,
        elinewidth=0.7,
        label="published",
    )
    return True


def caption(runs: Runs, columns: Sequence[Column]) -> list[str]:
    spread = ", bars: standard deviation" if any(len(column.records) > 1 for column in columns) else ""
    sentences = [
        f"{runs.manifest['title']}: {seeds_text(columns)}{spread}; lower is better.",
        f"Settings are called as in the published table; diamond: {runs.manifest['reference']}.",
    ]
    lacking: dict[str, list[str]] = {}
    for column in columns:
        if column.name in runs.manifest["incomparable"]:
            lacking.setdefault(runs.manifest["incomparable"][column.name], []).append(column.name)
    for reason, names in lacking.items():
        which = "Published values are" if len(names) == len(columns) else f"The published value of {some(names)} is"
        sentences.append(f"{which} not shown: {reason}.")
    return sentences
