"""Draw the table of several tasks: a panel for each task, a row for each method, a line at the baseline."""

import textwrap
from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.style import (
    BLACK,
    COLOURS,
    DOUBLE,
    SMALL,
    NotDrawn,
    new_figure,
    no_formula,
    panel_name,
    short_name,
)
from benchmark.measure.statistics import LEVEL
from benchmark.tables.looks import look_of
from benchmark.tables.summary.compare import Compared, Line, Regime
from benchmark.tables.summary.sheets import Summary, mute_notes, usual

AROUND, TITLE = 0.6, 0.13
"""Inches of a panel for its numbers and axis label, and for each line of its name."""
NAMES, CHARACTER = 1.7, 0.062
"""Inches for the names of the methods, and for a character of a panel's name."""
ROW = 0.165
"""Inches from one method to the next."""
BESIDE = 4
"""The most panels beside each other."""
FAR = 3.0
"""Changes beyond this many times the upper quartile are written as numbers at the end of the axis."""
ROOM = 1.1
"""Length of the axis on each side of 0, as a multiple of the largest end that it shows."""
BAND = "#F6F6F6"
"""Behind every other row, so that a row can be followed through all panels."""


def draw(summary: Summary, *, plain: bool = False) -> Figure:
    regimes = [regime for regime in summary.regimes if any(regime.at(line).n for line in summary.lines)]
    if not regimes:
        raise NotDrawn("no method shares a seed with the baseline on any task")
    lines = [line for line in summary.lines if any(regime.at(line).n for regime in regimes)]
    rows = ceil(len(regimes) / BESIDE)
    beside = ceil(len(regimes) / rows)
    names = [panel_lines(regime, beside) for regime in regimes]
    height = rows * (AROUND + TITLE * max(map(len, names)) + ROW * len(lines))
    figure = new_figure(DOUBLE, height, caption(summary, regimes), plain=plain)
    panels = figure.subplots(rows, beside, sharey=True, squeeze=False).ravel()
    for axes, regime, name in zip(panels, regimes, names, strict=False):
        draw_panel(axes, lines, regime)
        panel_name(axes, "\n".join(name))
        axes.set_xlabel(f"change of {summary.measure} (%)")
    for axes in panels[len(regimes) :]:
        axes.set_visible(False)
    return figure


def panel_lines(regime: Regime, beside: int) -> list[str]:
    """Return the lines above a panel: the title of its task, and how many runs the baseline has."""
    width = int((DOUBLE - NAMES) / beside / CHARACTER)
    return [*map(no_formula, textwrap.wrap(regime.title, width)), f"{regime.baseline} = 0, n = {usual(regime)}"]


def draw_panel(axes: Axes, lines: Sequence[Line], regime: Regime) -> None:
    """Draw a mark at the mean change of each method and a line for its interval."""
    found = [regime.at(line) for line in lines]
    end = reach(found)
    for place in range(1, len(lines), 2):
        axes.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
    axes.axvline(0, color=BLACK, linewidth=0.6)
    for place, (line, each) in enumerate(zip(lines, found, strict=True)):
        if each.n:
            draw_mark(axes, place, line, each, end)
    axes.set(xlim=limits_of(found, end), ylim=(len(lines) - 0.4, -0.6))
    axes.set_yticks(range(len(lines)), [short_name(line.name, 26) for line in lines])
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)  # it would look like a second line at 0
    axes.tick_params(axis="y", length=0)


def draw_mark(axes: Axes, place: int, line: Line, found: Compared, end: float) -> None:
    """Draw a method: filled where it is significant, a square where it is read with a further score."""
    colour = COLOURS[look_of(line.label).colour]
    if abs(found.mean) > end:
        text = f"{found.mean:+.0f} ▸" if found.mean > 0 else f"◂ {found.mean:+.0f}"
        side = "right" if found.mean > 0 else "left"
        axes.text(np.sign(found.mean) * end, place, text, ha=side, va="center", fontsize=SMALL, color=colour)
        return
    fill = colour if found.is_significant else "white"
    style = {"color": colour, "markerfacecolor": fill, "markersize": 3.6, "elinewidth": 1.0}
    mark = "s" if line.score else "o"
    axes.errorbar(found.mean, place, xerr=found.shown_width or None, fmt=mark, **style)  # type: ignore[arg-type]


def reach(found: Sequence[Compared]) -> float:
    """Return how far the axis goes from 0: to all ends, except for a few that would make the others tiny."""
    extents = [abs(each.mean) + each.shown_width for each in found if each.n]
    limit = FAR * float(np.quantile([extent for extent in extents if extent] or [1.0], 0.75))
    return ROOM * max((extent for extent in extents if 0 < extent <= limit), default=1.0)


def limits_of(found: Sequence[Compared], end: float) -> tuple[float, float]:
    """Return the ends of the axis: 0 and all that it shows, with some room beyond."""
    lows = [max(each.mean - each.shown_width, -end) for each in found if each.n]
    highs = [min(each.mean + each.shown_width, end) for each in found if each.n]
    low, high = min(0.0, *lows), max(0.0, *highs)
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def is_cut_off(found: Sequence[Compared]) -> bool:
    """Tell whether an axis does not show all of one of these."""
    return any(abs(each.mean) + each.shown_width > reach(found) for each in found if each.n)


def caption(summary: Summary, regimes: Sequence[Regime]) -> list[str]:
    base = summary.baseline
    panels = [[regime.at(line) for line in summary.lines] for regime in regimes]
    empty = any(not each.n for panel in panels for each in panel)
    squares = any(line.score for line in summary.lines)
    return [
        f"Change of the {summary.measure} against {base} of the same seeds: mean and {1 - LEVEL:.0%} t interval; "
        f"{summary.good} 0 is better. Each panel has an axis of its own.",
        f"Filled: significant (level {LEVEL:g}, Holm's correction over all methods of a task).",
        *(["Squares: read with another score than the method's own."] if squares else []),
        *mute_notes(summary),
        *(["Some intervals go on beyond the axis; ◂ ▸: all of it is there."] if any(map(is_cut_off, panels)) else []),
        *(["Without a mark: not run, or nothing to compare."] if empty else []),
    ]
