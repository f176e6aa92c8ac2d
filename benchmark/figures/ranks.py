"""Draw average ranks over a table's coverages, with bars that join columns whose ranks the seeds cannot separate.

The coverages of a task are not independent data sets, so no test is made over them: only seeds are resampled, if there
are enough of them.
"""

from collections.abc import Sequence

import networkx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.base.units import counted
from benchmark.figures.runs import Runs
from benchmark.figures.style import BLACK, DOUBLE, GREY, SMALL, NotDrawn, colour_of, short_name
from benchmark.measure.statistics import LEAST_SEEDS, LEVEL, Array, smallest_p_text
from benchmark.tables.build import average_ranks
from benchmark.tables.columns import Column, abbreviate
from benchmark.tables.statistics import RESAMPLES, draw_ranks

NUMBERS = 14
"""How many numbers fit on the axis."""
BAR, LABEL = 0.11, 0.165
"""Inches from one bar, and from one label, to the next."""
TOP, MARGIN, GAP = 0.34, 2.0, 0.1
"""Inches above the axis, beside it, and between bars and labels."""
MOST, MOST_BARS = 20, 15
"""The most columns and bars that a reader can still tell apart."""


def draw(runs: Runs) -> Figure:
    names = [column.name for column in runs.judged]
    drawn = draw_ranks(runs.rows, names, runs.cells, paired=runs.manifest.paired)
    if drawn is None:
        raise NotDrawn("it takes two columns with a value at every coverage, and two seeds")
    printed = [float(rank) for rank in average_ranks(runs.rows, drawn.names, runs.cells)]
    order = sorted(range(len(printed)), key=lambda index: (printed[index], index))
    order, crowded = keep_best(order, drawn.names, runs.manifest.reference)
    by_name = {column.name: column for column in runs.judged}
    columns, ranks = [by_name[drawn.names[index]] for index in order], [printed[index] for index in order]
    every = [] if drawn.ranks is None else cliques(unresolved(drawn.ranks[:, order]))
    bars = sorted(sorted(every, key=lambda clique: -len(clique))[:MOST_BARS])
    left_out = [column.name for column in runs.columns if column.name not in drawn.names and not column.is_oracle]
    below = TOP + GAP + BAR * len(bars)
    height = below + LABEL * ((len(columns) + 1) // 2) + 0.12
    text = caption(runs, len(drawn.seeds), bool(bars), left_out)
    text += [f"Left out: {counted(crowded, 'column')} of higher rank."] if crowded else []
    text += [f"Only the {MOST_BARS} longest of {len(every)} bars are drawn."] if len(every) > len(bars) else []
    figure = runs.new_figure(DOUBLE, height, text)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, DOUBLE), ylim=(figure.get_figheight(), 0))
    highest = max(len(columns), int(np.ceil(max(ranks))))
    places = [place_of(rank, highest) for rank in ranks]
    draw_axis(axes, highest)
    draw_bars(axes, bars, places)
    if drawn.ranks is None:  # without this note, no bar would mean that all columns differ
        note = f"{len(drawn.seeds)} seeds: too few for bars"
        axes.text(DOUBLE - MARGIN + 0.15, TOP - 0.07, note, fontsize=SMALL, color=GREY, va="bottom")
    draw_labels(axes, columns, ranks, places, below, runs.manifest.reference)
    return figure


def keep_best(order: Sequence[int], names: Sequence[str], reference: str) -> tuple[list[int], int]:
    """Return the first columns of the order plus the reference, and how many columns are left out."""
    kept = [index for place, index in enumerate(order) if place < MOST or names[index] == reference]
    return kept, len(order) - len(kept)


def unresolved(ranks: Array) -> Array:
    """Return for each pair whether the interval of its difference of ranks contains 0; `ranks` is (draws, columns)."""
    differences = ranks[:, :, None] - ranks[:, None, :]
    low, high = np.percentile(differences, [100 * LEVEL / 2, 100 * (1 - LEVEL / 2)], axis=0)
    return np.asarray((low <= 0) & (high >= 0))


def cliques(joined: Array) -> list[tuple[int, ...]]:
    """Return the largest sets of columns in which every pair is joined; members need not be neighbours by rank."""
    sets = networkx.find_cliques(networkx.from_numpy_array(joined))
    return sorted(tuple(sorted(members)) for members in sets if len(members) > 1)


def place_of(rank: float, highest: int) -> float:
    """Return the position of a rank on an axis from 1 to `highest`, in inches from the left."""
    return MARGIN + (rank - 1) / (highest - 1) * (DOUBLE - 2 * MARGIN)


def draw_axis(axes: Axes, highest: int) -> None:
    """Draw the axis, with rank 1 (the lowest risk) at the left."""
    left, step = place_of(1, highest), 1 + highest // NUMBERS
    axes.plot([left, place_of(highest, highest)], [TOP, TOP], color=BLACK, linewidth=0.8)
    for rank in range(1, highest + 1):
        place = place_of(rank, highest)
        axes.plot([place, place], [TOP - 0.05, TOP], color=BLACK, linewidth=0.8)
        if (rank - 1) % step == 0:
            axes.text(place, TOP - 0.07, str(rank), ha="center", va="bottom")
    axes.text(left - 0.15, TOP - 0.07, "average rank", ha="right", va="bottom", color=GREY)


def draw_bars(axes: Axes, bars: Sequence[tuple[int, ...]], places: Sequence[float]) -> None:
    """Draw each bar as a line from its first member to its last, with a dot for every member."""
    for level, members in enumerate(bars):
        y = TOP + GAP + BAR * level
        axes.plot([places[members[0]], places[members[-1]]], [y, y], color=BLACK, linewidth=1.6, zorder=3)
        axes.plot([places[m] for m in members], [y] * len(members), "o", color=BLACK, markersize=3.4, zorder=4)


def draw_labels(
    axes: Axes, columns: Sequence[Column], ranks: Sequence[float], places: Sequence[float], below: float, reference: str
) -> None:
    """Write the better half at the left, the rest at the right, each at the end of a line that starts at its rank."""
    half = (len(columns) + 1) // 2
    for index, (column, rank, place) in enumerate(zip(columns, ranks, places, strict=True)):
        left, strong = index < half, column.name == reference
        y = below + LABEL * (index if left else len(columns) - 1 - index) + 0.06
        end = MARGIN - 0.12 if left else DOUBLE - MARGIN + 0.12
        width = 1.4 if strong else 0.8
        axes.plot([place, place, end], [TOP, y, y], color=colour_of(column), linewidth=width, zorder=2)
        name, x = short_name(column.name, 20), end + (-0.05 if left else 0.05)
        text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        weight = "bold" if strong else "normal"
        axes.text(x, y, text, weight=weight, ha="right" if left else "left", va="center")


def caption(runs: Runs, seeds: int, joins: bool, left_out: Sequence[str]) -> list[str]:
    meaning = f"{1 - LEVEL:.0%} of {RESAMPLES:,} joint draws of the {seeds} seeds"
    if seeds < LEAST_SEEDS:
        result = (
            f"{seeds} seeds are too few to draw from (it takes {LEAST_SEEDS}): nothing is said of which columns differ."
        )
    elif joins:
        result = (
            "A bar joins the dotted columns, no two of which the seeds tell apart: the interval of the difference of "
            f"their average ranks ({meaning}) contains 0."
        )
    else:
        result = f"For every pair the interval of the difference of their average ranks ({meaning}) leaves 0 out."
    return [
        f"{runs.manifest.title}: average rank over the table's {len(runs.rows)} coverages, 1 = lowest risk.",
        result,
        smallest_p_text(seeds),
        "Coverages of one task are not independent, so no test is made over them.",
        *([f"Without a rank, as values are missing: {abbreviate(left_out)}."] if left_out else []),
    ]
