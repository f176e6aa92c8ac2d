"""The figure of several tasks: what is behind its marks, what it does without, and whether its texts fit."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from benchmark.figures import style, summary
from benchmark.store.store import Store
from benchmark.tables.looks import look_of
from benchmark.tables.summary.sheets import Summary
from tests.figures.test_figures import drawn_texts
from tests.tables.test_summary import luck, make, noisy, summary_of


def figure_of(made: Summary) -> Figure:
    with style.house_style():
        return summary.draw(made)


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def marks(axes: Axes) -> list[tuple[float, str, bool]]:
    """Where each mark of a panel stands, its colour, and whether it is open."""
    bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    points = [bar.lines[0] for bar in bars]
    return [
        (float(np.ravel(p.get_xdata())[0]), str(p.get_color()), p.get_markerfacecolor() == "white")
        for p in points
        if p is not None
    ]


def test_marks_are_the_changes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = summary_of(store, make(store, "one", noisy), make(store, "two", noisy, range(3), ("Plain", "Worse")))
    figure = figure_of(made)
    assert [axes.get_title("left") for axes in panels(figure)] == [
        "one data\nPlain = 0, n = 8", "two data\nPlain = 0, n = 3"
    ]  # fmt: skip
    for axes, regime in zip(panels(figure), made.regimes, strict=True):
        shown = [(line, regime.compared[line.name]) for line in made.lines if line.name in regime.compared]
        assert marks(axes) == [
            (pytest.approx(each.mean), style.COLOURS[look_of(line.label).colour], not each.is_significant)
            for line, each in shown
        ]
        low, high = axes.get_xlim()
        assert low < 0 < high
    assert {is_open for *_, is_open in marks(panels(figure)[0])} == {True, False}
    text = " ".join(each.get_text() for each in figure.texts)
    assert "Too few seeds for a marker: two data." in text
    assert "Without a mark: not run, or nothing to compare." in text


def test_a_change_that_would_hide_all_others_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    levels = {"Plain": 1.0, "Far": 10.0} | {f"M{number}": 1 + number / 10 for number in range(1, 7)}
    manifest = make(store, "one", lambda name, seed: levels[name] * luck(seed), names=levels)
    (axes,) = panels(figure_of(summary_of(store, manifest)))
    assert len(marks(axes)) == 6
    assert [text.get_text() for text in axes.texts] == ["+900 ▸"]
    assert axes.get_xlim()[1] < 100


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(style.NotDrawn, match="no method shares a seed"):
        summary.draw(summary_of(store, make(store, "one", names=("Better",))))


@pytest.mark.parametrize("tasks", [1, 5])
def test_no_text_is_cut_or_covered(tmp_path: Path, tasks: int) -> None:
    store = Store(tmp_path)
    titled = {f"task{number}": f"a task of a rather long title, number {number}" for number in range(tasks)}
    manifests = [make(store, name, noisy, range(3)) for name in titled]
    made = summary_of(store, *(type(each)(**{**vars(each), "title": titled[each.name]}) for each in manifests))
    figure = figure_of(made)
    texts, page = drawn_texts(figure), figure.bbox.padded(1)
    assert not [text for text, box in texts.items() if not (page.contains(*box.min) and page.contains(*box.max))]
    covered = [(a, b) for a, b in combinations(texts, 2) if texts[a].padded(-3).overlaps(texts[b].padded(-3))]
    assert not covered
