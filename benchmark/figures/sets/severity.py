"""Draw how AURC and selective risk grow with the severity of a shift, of all kinds and of each family."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.runs import Runs
from benchmark.figures.sets.panels import caption, draw_panel, lines_of
from benchmark.figures.style import DOUBLE, NotDrawn, draw_legend
from benchmark.tables.sets.panels import risk_panels, severities

ABOVE, BELOW = 2.3, 1.8
"""Heights in inches of the row of all kinds and of the row of the families."""
NOTE = "Clean images have severity 0. AURC is a mean over kinds; selective risk is that of all kinds together."


def draw(runs: Runs) -> Figure:
    shown = lines_of(runs)
    if not severities(shown):
        raise NotDrawn("its images have no severities")
    panels = risk_panels(shown)
    own = len(panels) - 2
    figure = runs.new_figure(DOUBLE, ABOVE + (BELOW if own else 0), [*caption(runs, shown), NOTE])
    axes = make_axes(figure, own)
    for each in axes[3:]:
        each.sharey(axes[2])
    for each, panel, letter in zip(axes, panels, "abcdefg", strict=False):
        draw_panel(each, panel, letter, shown, runs)
    for each in axes:
        each.set_ylim(bottom=0)
    for each in axes[3:]:
        each.set_ylabel("")
    draw_legend(figure, axes[0])
    return figure


def make_axes(figure: Figure, families: int) -> list[Axes]:
    """Return two panels, and below them one for each family."""
    if not families:
        return list(figure.subplots(1, 2))
    below = "".join(2 * letter for letter in "cdefg"[:families])
    mosaic = f"{families * 'a'}{families * 'b'};{below}"
    return list(figure.subplot_mosaic(mosaic, height_ratios=[ABOVE, BELOW]).values())
