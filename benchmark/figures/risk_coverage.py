"""Draw selective risk by coverage: the whole curve, a part of it with its own axis, and differences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.differences import curves_by_seed, differences, far_off, limits
from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, draw_legend, draw_mean, line_look, panel_name, short_name
from benchmark.measure.statistics import Array
from benchmark.store.manifest import Manifest
from benchmark.tables.build import curve_of
from benchmark.tables.columns import Column, abbreviate

COVERAGE = np.arange(201) / 2
"""The coverage of each point of a curve, in per cent."""
MOST = 8
"""The most lines that a reader can follow."""
MARKS = 5
"""How many marks a line has in a panel."""
HIGH = 70
"""If all coverages of a table are at or above this, panel (b) shows the high end."""
FAINT = 0.36
"""Opacity of the bands of all lines together, where they overlap."""
FEW = 2.0
"""Below this coverage so few images are kept that one error makes a peak: it must not set the height of a panel."""
HALF, STEEP, NOTHING = 50.0, 0.25, 0.01
"""The coverage where the low end stops; shares of the full risk: up to STEEP is shown, below NOTHING is invisible."""


def draw(runs: Runs) -> Figure:
    reference, curve = runs.manifest.reference, curve_of(runs.manifest)
    usable = [column for column in runs.judged if not column.parts and curves_by_seed(column, curve)]
    if not usable:
        raise NotDrawn("no column has a run with one curve")
    shown = choose_columns(usable, runs.ranked, reference)
    base = base_of(usable, runs.manifest)
    compared = [*shown, *(column for column in usable if column.name == base)] if runs.manifest.paired else []
    deltas = differences(compared, base, curve)
    bounds = shown_coverages(runs.manifest.coverages)
    text = caption(runs, shown, len(usable))
    text += difference_notes(deltas, bounds, base) if deltas else []
    figure = runs.new_figure(DOUBLE, 4.5 if deltas else 2.75, text)
    panels = figure.subplot_mosaic("ab;cc" if deltas else "ab", height_ratios=[1.25, 1] if deltas else [1])
    draw_risks(panels["a"], panels["b"], shown, runs)
    if deltas:
        styles = {column.name: line_look(column, reference) for column in shown}
        draw_differences(panels["c"], deltas, bounds, styles)
        panel_name(panels["c"], f"(c) difference from {short_name(base)}, seed by seed")
    draw_legend(figure, panels["a"])
    return figure


def base_of(columns: Sequence[Column], manifest: Manifest) -> str:
    """Return the column that is subtracted: the task's baseline, as for gains, or else the reference."""
    baseline = str(manifest.baseline)
    return baseline if baseline in {column.name for column in columns} else str(manifest.reference)


def draw_risks(whole: Axes, part: Axes, shown: Sequence[Column], runs: Runs) -> None:
    """Draw all coverages, and the part in which the columns can be told apart."""
    curve = curve_of(runs.manifest)
    curves = {column.name: seed_curves(column, curve) for column in shown}
    oracle = next((column for column in runs.columns if column.is_oracle and curves_by_seed(column, curve)), None)
    low, high = zoom(runs.manifest.coverages, [risks.mean(axis=0) for risks in curves.values()])
    for axes, bounds in ((whole, (0.0, 100.0)), (part, (low, high))):
        inside = points_within(bounds)
        for index, column in enumerate(shown):
            marks = {"markevery": marker_points(index, len(shown), bounds)}
            style = line_look(column, runs.manifest.reference) | marks
            risks = curves[column.name][:, inside]
            draw_mean(axes, COVERAGE[inside], risks, short_name(column.name), style, FAINT / len(curves))
        if oracle is not None:
            style = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 1.0}
            draw_mean(axes, COVERAGE[inside], seed_curves(oracle, curve)[:, inside], "oracle", style, 0)
        axes.set(xlim=bounds, xlabel="coverage (%)", ylabel="selective risk (%)")
        axes.set_ylim(top=min(axes.get_ylim()[1], height(curves.values(), bounds)))
        if axes.get_ylim()[0] < 0.1 * axes.get_ylim()[1]:
            axes.set_ylim(bottom=0)
    panel_name(whole, "(a) all coverages")
    panel_name(part, f"(b) coverage {low:g} to {high:g} %, risk axis of its own")


def draw_differences(
    axes: Axes, deltas: Mapping[str, Array], bounds: tuple[float, float], styles: Mapping[str, dict[str, Any]]
) -> None:
    """Draw a line and a band for each column; the line at 0 is the column that is subtracted."""
    inside = points_within(bounds)
    for index, (name, style) in enumerate(styles.items()):
        if name in deltas:
            style = style | {"markevery": marker_points(index, len(styles), bounds)}
            delta = deltas[name][:, inside]
            draw_mean(axes, COVERAGE[inside], delta, short_name(name), style, FAINT / len(deltas))
    base = next((style for name, style in styles.items() if name not in deltas), {"color": GREY, "linewidth": 1.0})
    axes.axhline(0, color=base["color"], linewidth=base["linewidth"], zorder=1.5)
    far = far_off(deltas, inside)
    ylim = limits([delta for name, delta in deltas.items() if name not in far], inside)
    axes.set(xlim=bounds, ylim=ylim, xlabel="coverage (%)", ylabel="points of risk")


def shown_coverages(coverages: Sequence[float]) -> tuple[float, float]:
    """Return the range of the table's coverages; if it has only one, all that keep more than a few images."""
    return (float(min(coverages)) if min(coverages) < 100 else FEW), 100.0


def points_within(bounds: tuple[float, float]) -> slice:
    """Return the points of a curve between two coverages."""
    return slice(round(2 * bounds[0]), round(2 * bounds[1]) + 1)


def choose_columns(columns: Sequence[Column], ranks: Mapping[str, float], reference: str) -> list[Column]:
    """Return all columns if they are few, else the best by average rank and the reference, in the table's order."""
    if len(columns) <= MOST:
        return list(columns)
    others = sorted((c.name for c in columns if c.name != reference), key=lambda name: ranks.get(name, np.inf))
    kept = {reference, *others[: MOST - 1]}
    return [column for column in columns if column.name in kept]


def seed_curves(column: Column, curve: str) -> Array:
    """Return the risks of a column in per cent, as (seeds, coverages)."""
    return np.array(list(curves_by_seed(column, curve).values()))


def zoom(coverages: Sequence[float], means: Sequence[Array]) -> tuple[float, float]:
    """Return the coverages of panel (b): the table's if they are all high, else from 0 to where the risk gets steep.

    The latter is the lower half at most, unless the lines in it are too low to be seen.
    """
    if HIGH <= min(coverages) < 100:
        return float(min(coverages)), 100.0
    highest = np.max(means, axis=0)
    flat = [c for c in COVERAGE[20:191:10] if highest[: round(2 * c) + 1].max() <= STEEP * highest[-1]]
    end = max((c for c in flat if c <= HALF), default=HALF)
    if highest[: round(2 * end) + 1].max() < NOTHING * highest[-1]:
        end = max(flat)
    return 0.0, float(end)


def height(curves: Iterable[Array], bounds: tuple[float, float]) -> float:
    """Return the height of a panel that holds all bands where more than a few images are kept, with some space."""
    inside = points_within((max(FEW, bounds[0]), bounds[1]))
    return 1.05 * float(max(risks[:, inside].max() for risks in curves))


def marker_points(index: int, lines: int, bounds: tuple[float, float]) -> slice:
    """Return which points of a line have a mark: a few, and other points than those of the neighbouring lines."""
    points = round(2 * (bounds[1] - bounds[0])) + 1
    step = max(1, points // MARKS)
    return slice(round((index + 0.5) / lines * step), None, step)


def caption(runs: Runs, shown: Sequence[Column], usable: int) -> list[str]:
    """Return sentences that say what the lines are, and what is not shown."""
    parted = [column.name for column in runs.judged if column.parts]
    reason = "Without a curve, as each coverage has a training of its own"
    empty = [column.name for column in runs.columns if not column.records]
    curve = curve_of(runs.manifest)
    unknown = [column.name for column in runs.judged if not column.parts and not curves_by_seed(column, curve)]
    return [
        f"{runs.manifest.title}: {seeds_text(shown, '; band: smallest to largest')}.",
        *choice_notes(shown, usable, runs.manifest.reference),
        *([f"{reason}: {abbreviate(parted)}."] if parted else []),
        *([f"Without a curve that this code has measured: {abbreviate(unknown)}."] if unknown else []),
        *([f"Without a run: {abbreviate(empty)}."] if empty else []),
    ]


def choice_notes(shown: Sequence[Column], usable: int, reference: str) -> list[str]:
    """Return a sentence that says which columns were chosen, where not all are shown."""
    more = usable - len(shown)
    best = f"the best {len(shown) - 1} columns by average rank and the reference {reference}"
    return [f"Shown are {best}; {more} more are left out."] if more else []


def difference_notes(deltas: Mapping[str, Array], bounds: tuple[float, float], base: str) -> list[str]:
    """Return sentences that say what the panel of differences shows, and what it cuts off."""
    far = far_off(deltas, points_within(bounds))
    text = f"(c): risk minus that of {base} in runs of the same seed; below 0 is better."
    return [text, *([f"Beyond its axis: {abbreviate(far)}."] if far else [])]
