"""Draw how the results depend on one setting, for the published sensitivity tables: our runs and published values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.style import COLOURS, DOUBLE, GREY, NotDrawn, panel_name
from benchmark.paper.values import published_figures
from benchmark.store.manifest import Manifest
from benchmark.tables.build import MEASURES, curve_of, curve_value, run_values
from benchmark.tables.columns import Column, abbreviate
from benchmark.tables.model import Row

COVERAGES = (100, 80, 50)
WIDE = 100
"""Settings that span more than this factor get a log axis."""
CROWDED = 0.05
"""If two settings are closer than this share of the axis, all are spaced evenly, so that their names do not overlap."""


@dataclass(frozen=True)
class Axis:
    """The places of the settings, and the words for this kind of axis."""

    kind: str
    places: tuple[float, ...]


def draw(runs: Runs) -> Figure:
    columns = [column for column in runs.judged if setting_of(column.name) is not None]
    if not columns:
        raise NotDrawn("none of its columns has a run")
    axis = axis_of([setting_of(column.name) or 0.0 for column in columns])
    rows = [MEASURES[0], *(Row(f"{c}", curve_value(curve_of(runs.manifest), c), coverage=c) for c in COVERAGES)]
    figure = runs.new_figure(DOUBLE, 1.85, caption(runs, columns))
    drawn_published = False
    for axes, row in zip(figure.subplots(1, len(rows)), rows, strict=True):
        draw_ours(axes, row, columns, axis, runs.manifest.reference)
        drawn_published |= draw_published(axes, row, columns, axis, runs.manifest)
        axes.set_xticks(axis.places, [column.name.partition("=")[2] for column in columns])
        if len(columns) > 4:
            axes.tick_params(axis="x", rotation=40)
        axes.set_xlabel(f"{columns[0].name.partition('=')[0]}{axis.kind}")
        axes.margins(x=0.1, y=0.15)
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
        panel_name(axes, row.label if row.coverage is None else f"risk (%), {row.coverage:g} % coverage")
    if drawn_published:
        figure.legend(*figure.axes[1].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def setting_of(name: str) -> float | None:
    """Return the number after '=' in a column's name; None if there is none."""
    match = re.search(r"=\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)$", name)
    return float(match[1]) if match else None


def axis_of(settings: Sequence[float]) -> Axis:
    """Return a linear axis; a log axis for a wide span, with 0 a step below; even spaces where names would overlap."""
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
    """Draw our runs; the setting of the main table has a diamond."""
    by_column = [list(run_values(row, column).values()) for column in columns]
    line = sorted((x, float(np.mean(v)), float(np.std(v))) for x, v in zip(axis.places, by_column, strict=True) if v)
    x, means, stds = (list(part) for part in zip(*line, strict=True)) if line else ([], [], [])
    axes.errorbar(x, means, yerr=stds, fmt="o-", color=COLOURS[1], markersize=3.6, elinewidth=0.8, label="ours")
    for place, column, values in zip(axis.places, columns, by_column, strict=True):
        if column.name == reference and values:
            axes.plot([place], [np.mean(values)], "D", color=COLOURS[0], markersize=5, zorder=4)


def draw_published(axes: Axes, row: Row, columns: Sequence[Column], axis: Axis, manifest: Manifest) -> bool:
    """Draw hollow marks for the published values of comparable columns; return whether there is one."""
    cells = published_figures()[manifest.published].cells
    shift = 0.02 * (max(axis.places) - min(axis.places))
    points = [
        (place + shift, cells[key].mean, cells[key].std)
        for place, column in zip(axis.places, columns, strict=True)
        if (key := (int(row.coverage or 0), column.name)) in cells and column.name not in manifest.incomparable
    ]
    if points:
        x, means, stds = zip(*points, strict=True)
        style = {"color": GREY, "markerfacecolor": "white", "markersize": 4, "elinewidth": 0.7, "label": "published"}
        axes.errorbar(x, means, yerr=stds, fmt="s", **style)  # type: ignore[arg-type]
    return bool(points)


def caption(runs: Runs, columns: Sequence[Column]) -> list[str]:
    title, reference = runs.manifest.title, runs.manifest.reference
    sentences = [
        f"{title}: {seeds_text(columns, ', bars: standard deviation')}; lower is better.",
        f"Settings are called as in the published table; diamond: {reference}.",
    ]
    lacking: dict[str, list[str]] = {}
    for column in columns:
        if column.name in runs.manifest.incomparable:
            lacking.setdefault(runs.manifest.incomparable[column.name], []).append(column.name)
    for reason, names in lacking.items():
        one = f"The published value of {abbreviate(names)} is"
        which = "Published values are" if len(names) == len(columns) else one
        sentences.append(f"{which} not shown: {reason}.")
    return sentences
