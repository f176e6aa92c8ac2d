"""Draw what a threshold of clean validation images keeps of other images, and how often that is wrong.

A selective classifier should keep less as severity grows, and of new classes nothing.
"""

from matplotlib.figure import Figure

from benchmark.figures.runs import Runs
from benchmark.figures.sets.panels import caption, columns_of, draw_panel, lines_of
from benchmark.figures.style import DOUBLE, NotDrawn, draw_legend
from benchmark.tables.sets.panels import kind_of, reason_for_no_thresholds, threshold_panels

HEIGHT = 2.15
"""Inches of a row of two panels."""
CARRIED = ("corruptions", "shift", "new")
"""Kinds of sets whose images are not those of the test set."""


def draw(runs: Runs) -> Figure:
    if kind_of(columns_of(runs)) not in CARRIED:
        raise NotDrawn("its images are the test images, so no threshold is carried to others")
    shown = lines_of(runs)
    panels = threshold_panels(shown)
    if not panels:
        raise NotDrawn(reason_for_no_thresholds(shown) or "no threshold below 100 % was set")
    rows = len(panels) // 2
    figure = runs.new_figure(DOUBLE, HEIGHT * rows, [*caption(runs, shown), *notes(kind_of(shown))])
    every = list(figure.subplots(rows, 2).flat)
    for axes, panel, letter in zip(every, panels, "abcd", strict=False):
        draw_panel(axes, panel, letter, shown, runs)
    draw_legend(figure, every[0])
    return figure


def notes(kind: str) -> list[str]:
    """Return sentences that say how thresholds were set, and what is good."""
    text = "Thresholds were set on clean validation images; dotted: the coverage that they keep there."
    return [text, "To keep an image of a new class is an error."] if kind == "new" else [text]
