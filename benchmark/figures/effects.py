"""Draw what each ingredient of a crossed grid does to AURC and accuracy: a panel for each, a row for each method."""

from collections.abc import Sequence
from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.runs import Runs, span_text
from benchmark.figures.style import BLACK, COLOURS, DOUBLE, NotDrawn, panel_name, short_name
from benchmark.measure.effects import smallest_flip_p_text
from benchmark.measure.statistics import LEVEL
from benchmark.tables.columns import abbreviate
from benchmark.tables.effects.grid import RESPONSES, find_grid
from benchmark.tables.effects.lines import ALL, Estimate, Line, is_cut_off, known, limits_of, main_effects
from benchmark.tables.effects.sheets import BLOCKS
from benchmark.tables.looks import look_of
from benchmark.tables.model import Row

AROUND = 0.78
"""Inches of a panel for its name, numbers and axis label."""
ROW = 0.17
"""Inches from one method to the next."""
SHOWN = {"aurc": "lower is better", "accuracy": "higher is better"}
"""The responses that are drawn, and what is good there."""
BESIDE = 3
"""The most panels beside each other."""


def draw(runs: Runs) -> Figure:
    grid = find_grid(runs.manifest, runs.columns)
    if grid is None:
        raise NotDrawn(why_not(runs))
    lines = main_effects(grid)
    rows = [row for row in RESPONSES if row.measure in SHOWN and any(known(lines, row))]
    if not rows:
        raise NotDrawn("no ingredient has all of its cells, or none of them share a seed")
    effects = list(dict.fromkeys(line.effect for line in lines))
    methods = list(dict.fromkeys(line.method for line in lines))
    beside = ceil(len(effects) / ceil(len(effects) / BESIDE))
    groups = [effects[start : start + beside] for start in range(0, len(effects), beside)]
    height = len(groups) * len(rows) * (AROUND + ROW * len(methods))
    figure = runs.new_figure(DOUBLE, height, caption(runs, lines, rows))
    panels = iter(figure.subplots(len(groups) * len(rows), beside, sharey=True, squeeze=False))
    for group in groups:
        for row in rows:
            draw_row(next(panels), group, methods, lines, row)
    return figure


def why_not(runs: Runs) -> str:
    if not runs.manifest.factors:
        return "its runs are no crossed grid of ingredients"
    if not runs.manifest.paired:
        return "effects are counted in runs of one seed, and nothing says that these are pairs"
    return "no run of the grid is there"


def draw_row(
    panels: Sequence[Axes], group: Sequence[str], methods: Sequence[str], lines: Sequence[Line], row: Row
) -> None:
    """Draw the panels of one response, all with the same axis, so that ingredients can be compared."""
    limits = limits_of(known(lines, row))
    for axes, effect in zip(panels, group, strict=False):
        own = {line.method: line.by_response[row.measure] for line in lines if line.effect == effect}
        draw_panel(axes, [own[method] for method in methods], methods)
        panel_name(axes, short_name(effect, 26))
        axes.set(xlim=limits, ylim=(len(methods) - 0.4, -0.6), xlabel=f"change of {row.label}\n({SHOWN[row.measure]})")
    for axes in panels[len(group) :]:
        axes.set_visible(False)


def draw_panel(axes: Axes, estimates: Sequence[Estimate], methods: Sequence[str]) -> None:
    """Draw a line for the interval of each method and a mark at its mean, which is open where nothing is shown."""
    axes.axvline(0, color=BLACK, linewidth=0.6)
    for place, (method, shown) in enumerate(zip(methods, estimates, strict=True)):
        if not shown.n:
            continue
        colour = BLACK if method == ALL else COLOURS[look_of(method).colour]
        fill = colour if shown.is_significant else "white"
        style = {"color": colour, "markerfacecolor": fill, "markersize": 3.6, "elinewidth": 1.0}
        axes.errorbar(shown.mean, place, xerr=shown.shown_width, fmt="D" if method == ALL else "o", **style)  # type: ignore[arg-type]
    axes.set_yticks(range(len(methods)), [short_name(method, 20) for method in methods])
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)  # it would look like a second line at 0
    axes.tick_params(axis="y", length=0)


def caption(runs: Runs, lines: Sequence[Line], rows: Sequence[Row]) -> list[str]:
    shown = [each for row in rows for each in known(lines, row)]
    counts = {each.n for each in shown}
    several = "seeds" if max(counts) > 1 else "seed"
    tested = sum(bool(line.by_response[rows[0].measure].n) for line in lines)
    lost = [line.name for line in lines if not line.by_response[rows[0].measure].n]
    return [
        f"{runs.manifest.title}: what an ingredient changes, in the mean over all cells of the others, over "
        f"{span_text(counts)} {several}, with the {1 - LEVEL:.0%} t interval.",
        f"Open: not significant (sign-flip test over seeds, level {LEVEL:g}, Holm's correction over all lines).",
        smallest_flip_p_text(counts, tested),
        BLOCKS,
        *(["Some intervals go on beyond the axis."] if any(is_cut_off(known(lines, row)) for row in rows) else []),
        *([f"Without an effect, as runs are missing: {abbreviate(lost)}."] if lost else []),
    ]
