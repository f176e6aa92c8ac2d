"""Average ranks over a table's coverages, with bars that join the columns which the seeds do not tell apart.

Coverages of one task are no independent data sets, so nothing is tested over them: only seeds are resampled, if there
are enough of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.columns import some
from benchmark.plots.runs import Runs
from benchmark.plots.style import BLACK, DOUBLE, GREY, SMALL, NotDrawn, colour_of, short_name
from benchmark.significance import RESAMPLES, draw_ranks
from benchmark.stats import LEAST_SEEDS, LEVEL, Array, support
from benchmark.tables import average_ranks
from benchmark.units import counted

NUMBERS = 14
"""That the axis has room for."""
BAR, LABEL = 0.11, 0.165
"""Inches from one bar, and from one label, to the next."""
TOP, MARGIN, GAP = 0.34, 2.0, 0.1
"""Inches above the axis, beside it, and between bars and labels."""


def draw(runs: Runs) -> Figure:
    drawn = draw_ranks(runs.rows, [column.name for column in runs.judged], runs.cells)
    if drawn is None:
        raise NotDrawn("it takes two columns with a value at every coverage, and two seeds")
    printed = [float(rank) for rank in average_ranks(runs.rows, drawn.names, runs.cells)]
    order = sorted(range(len(printed)), key=lambda index: (printed[index], index))
    order, crowded = keep_best(order, drawn.names, runs.manifest["reference"])
    names, ranks = [drawn.names[index] for index in order], [printed[index] for index in order]
    every = [] if drawn.ranks is None else cliques(unresolved(drawn.ranks[:, order]))
    bars = sorted(sorted(every, key=lambda clique: -len(clique))[:MOST_BARS])
    left_out = [column.name for column in runs.columns if column.name not in drawn.names and not column.is_oracle]
    below = TOP + GAP + BAR * len(bars)
    height = below + LABEL * ((len(names) + 1) // 2) + 0.12
    text = caption(runs, len(drawn.seeds), bool(bars), left_out)
    text += [f"Left out: {counted(crowded, 'column')} of higher rank."] if crowded else []
    text += [f"Only the {MOST_BARS} longest of {len(every)} bars are drawn."] if len(every) > len(bars) else []
    figure = runs.new_figure(DOUBLE, height, text)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    total = figure.get_figheight()
    axes.set_xlim(0, DOUBLE)
    axes.set_ylim(total, 0)
    scale = draw_axis(axes, max(len(names), int(np.ceil(max(ranks)))))
    draw_bars(axes, bars, [scale(rank) for rank in ranks])
    if drawn.ranks is None:  # no bar would otherwise mean that all differ
        told = f"{len(drawn.seeds)} seeds: too few for bars"
        axes.text(DOUBLE - MARGIN + 0.15, TOP - 0.07, told, fontsize=SMALL, color=GREY, va="bottom")
    colours = {column.name: colour_of(column) for column in runs.judged}
    lines = [Labelled(name, rank, scale(rank), colours[name]) for name, rank in zip(names, ranks, strict=True)]
    draw_labels(axes, lines, below, runs.manifest["reference"])
    return figure


MOST, MOST_BARS = 20, 15
"""Columns and bars that one can still tell apart."""


def keep_best(order: Sequence[int], names: Sequence[str], reference: str) -> tuple[list[int], int]:
    """The first of the order, and the reference; and how many are left out."""
    kept = [index for place, index in enumerate(order) if place < MOST or names[index] == reference]
    return kept, len(order) - len(kept)


def unresolved(ranks: Array) -> Array:
    """Of ranks (draws, columns): whether the interval of a pair's difference of ranks contains 0."""
    differences = ranks[:, :, None] - ranks[:, None, :]
    low, high = np.percentile(differences, [100 * LEVEL / 2, 100 * (1 - LEVEL / 2)], axis=0)
    return np.asarray((low <= 0) & (high >= 0))


def cliques(joined: Array) -> list[tuple[int, ...]]:
    """The largest sets in which every pair is joined (Bron and Kerbosch); members need not be neighbours by rank."""
    near = [{j for j in range(len(joined)) if j != i and joined[i][j]} for i in range(len(joined))]
    found: list[tuple[int, ...]] = []

    def extend(members: set[int], candidates: set[int], done: set[int]) -> None:
        if not candidates and not done:
            found.append(tuple(sorted(members)))
            return
        # Every largest set has a member outside the neighbours of any one column: without this, time doubles with each.
        pivot = max(sorted(candidates | done), key=lambda index: len(candidates & near[index]))
        for index in sorted(candidates - near[pivot]):
            extend(members | {index}, candidates & near[index], done & near[index])
            candidates, done = candidates - {index}, done | {index}

    extend(set(), set(range(len(joined))), set())
    return sorted(clique for clique in found if len(clique) > 1)


class Scale:
    """Rank → inches from the left."""

    def __init__(self, highest: int) -> None:
        self.highest = highest

    def __call__(self, rank: float) -> float:
        return MARGIN + (rank - 1) / (self.highest - 1) * (DOUBLE - 2 * MARGIN)


def draw_axis(axes: Axes, highest: int) -> Scale:
    """Rank 1, the lowest risk, at the left."""
    scale, step = Scale(highest), 1 + highest // NUMBERS
    axes.plot([scale(1), scale(highest)], [TOP, TOP], color=BLACK, linewidth=0.8)
    for rank in range(1, highest + 1):
        axes.plot([scale(rank)] * 2, [TOP - 0.05, TOP], color=BLACK, linewidth=0.8)
        if (rank - 1) % step == 0:
            axes.text(scale(rank), TOP - 0.07, str(rank), ha="center", va="bottom")
    axes.text(scale(1) - 0.15, TOP - 0.07, "average rank", ha="right", va="bottom", color=GREY)
    return scale


def draw_bars(axes: Axes, bars: Sequence[tuple[int, ...]], places: Sequence[float]) -> None:
    """One line each, from the first member to the last, with a dot for every member."""
    for level, members in enumerate(bars):
        y = TOP + GAP + BAR * level
        axes.plot([places[members[0]], places[members[-1]]], [y, y], color=BLACK, linewidth=1.6, zorder=3)
        axes.plot([places[m] for m in members], [y] * len(members), "o", color=BLACK, markersize=3.4, zorder=4)


@dataclass(frozen=True)
class Labelled:
    """A column, its rank, and where on the axis this lies."""

    name: str
    rank: float
    place: float
    colour: str


def draw_labels(axes: Axes, columns: Sequence[Labelled], below: float, reference: str) -> None:
    """The better half at the left, the rest at the right, each at the end of a line that starts at its rank."""
    half = (len(columns) + 1) // 2
    for index, each in enumerate(columns):
        left, strong = index < half, each.name == reference
        y = below + LABEL * (index if left else len(columns) - 1 - index) + 0.06
        end = MARGIN - 0.12 if left else DOUBLE - MARGIN + 0.12
        width = 1.4 if strong else 0.8
        axes.plot([each.place, each.place, end], [TOP, y, y], color=each.colour, linewidth=width, zorder=2)
        name, x = short_name(each.name, 20), end + (-0.05 if left else 0.05)
        text = f"{name}  {each.rank:.2f}" if left else f"{each.rank:.2f}  {name}"
        weight = "bold" if strong else "normal"
        axes.text(x, y, text, weight=weight, ha="right" if left else "left", va="center")


def caption(runs: Runs, seeds: int, joins: bool, left_out: Sequence[str]) -> list[str]:
    rows = len(runs.rows)
    sentences = [f"{runs.manifest['title']}: average rank over the table's {rows} coverages, 1 = lowest risk."]
    meaning = f"{1 - LEVEL:.0%} of {RESAMPLES:,} joint draws of the {seeds} seeds"
    if seeds < LEAST_SEEDS:
        sentences.append(
            f"{seeds} seeds are too few to draw from (it takes {LEAST_SEEDS}): nothing is said of which columns differ."
        )
    elif joins:
        sentences.append(
            "A bar joins the dotted columns, no two of which the seeds tell apart: the interval of the difference of "
            f"their average ranks ({meaning}) contains 0."
        )
    else:
        sentences.append(
            f"For every pair the interval of the difference of their average ranks ({meaning}) leaves 0 out."
        )
    sentences.append(support(seeds))
    sentences.append("Coverages of one task are not independent, so no test is made over them.")
    if left_out:
        sentences.append(f"Without a rank, as values are missing: {some(left_out)}.")
    return sentences
