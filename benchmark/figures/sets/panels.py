"""Draw panels with a line for each column and a place for each severity. Shared by the figures of evaluation sets."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmark.figures.risk_coverage import FAINT, choice_notes, choose_columns
from benchmark.figures.runs import Runs, seeds_text
from benchmark.figures.style import GREY, NotDrawn, draw_mean, line_look, panel_name, short_name
from benchmark.tables.columns import Column, abbreviate
from benchmark.tables.sets.panels import Panel, masked, with_parts


def columns_of(runs: Runs) -> list[Column]:
    """Return the columns whose runs were evaluated in parts. Raise NotDrawn where there are none."""
    if not runs.manifest.set_of:
        raise NotDrawn("this is no evaluation set; --evaluate makes one")
    found = with_parts(runs.judged)
    if not found:
        raise NotDrawn("no run was evaluated in parts")
    return found


def lines_of(runs: Runs) -> list[Column]:
    """Return as many of these columns as a reader can follow as lines."""
    return choose_columns(columns_of(runs), runs.ranked, runs.manifest.reference)


def draw_panel(axes: Axes, panel: Panel, letter: str, shown: Sequence[Column], runs: Runs) -> None:
    places = range(len(panel.places))
    for column in shown:
        style = line_look(column, runs.manifest.reference)
        curves = masked(panel.values[column.name])
        draw_mean(axes, places, curves, short_name(column.name), style, FAINT / len(shown))
    if panel.wanted is not None:
        axes.axhline(panel.wanted, color=GREY, linewidth=0.9, linestyle=":")
    panel_name(axes, f"({letter}) {panel.title}")
    axes.set(xlabel=panel.axis, ylabel=panel.label, xlim=(-0.25, len(places) - 0.75))
    axes.set_xticks(places, panel.places)


def make_grid(count: int, beside: int) -> tuple[int, int]:
    """Return how many rows of how many panels there are, at most so many beside each other and few left empty."""
    rows = ceil(count / beside)
    return rows, ceil(count / rows)


def name_grid(grid: NDArray[Any], count: int, label: str) -> None:
    """Hide the panels of a grid that are not used, and name the axis of the lowest in each column."""
    for index, axes in enumerate(grid.flat):
        is_lowest = index + grid.shape[1] >= count
        axes.set_visible(index < count)
        axes.tick_params(labelbottom=is_lowest)
        axes.set_xlabel(label if is_lowest else "")


def caption(runs: Runs, shown: Sequence[Column]) -> list[str]:
    """Return sentences that say what the lines are, and which are left out."""
    parted = [column.name for column in runs.judged if column.parts]
    return [
        f"{runs.manifest.title}: {seeds_text(shown, '; band: smallest to largest')}.",
        *choice_notes(shown, len(columns_of(runs)), runs.manifest.reference),
        *([f"Not shown, as each coverage has a training of its own: {abbreviate(parted)}."] if parted else []),
    ]
