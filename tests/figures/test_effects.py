"""The figure of effects: what is behind its marks, what it says where there is none, and whether its texts fit."""

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from benchmark.figures import effects, style
from benchmark.figures.runs import load_runs
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.store import Store
from tests.figures.test_figures import drawn_texts
from tests.tables.test_build import MANIFEST, diverged
from tests.tables.test_effects import exact, job_of, keep, lines_of, make, noisy, run_of


def figure_of(manifest: Manifest, store: Store) -> Figure:
    with style.house_style():
        return effects.draw(load_runs(manifest, store))


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def marks(axes: Axes) -> list[tuple[float, bool]]:
    """Where each mark of a panel stands, and whether it is open."""
    bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    points = [bar.lines[0] for bar in bars]
    return [(float(np.ravel(p.get_xdata())[0]), p.get_markerfacecolor() == "white") for p in points if p is not None]


def text_of(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def test_marks_are_the_effects(tmp_path: Path) -> None:
    """Panels of AURC, then of accuracy; a mark is filled where the sheet has a star."""
    manifest, store = make(tmp_path, noisy, seeds=9)
    figure, lines = figure_of(manifest, store), lines_of(manifest, store)
    assert [axes.get_title("left") for axes in panels(figure)] == 2 * ["Avg", "Mix", "Cut"]
    for index, axes in enumerate(panels(figure)):
        effect, response = ("Avg", "Mix", "Cut")[index % 3], ("aurc", "accuracy")[index // 3]
        shown = [lines[f"{method}: {effect}"].by_response[response] for method in ("Plain", "Other", "all methods")]
        assert marks(axes) == [(pytest.approx(each.mean), not each.is_significant) for each in shown]
        low, high = axes.get_xlim()
        assert low < 0 < high
    opened = [is_open for axes in panels(figure) for _, is_open in marks(axes)]
    assert 0 < sum(opened) < len(opened)
    assert [text.get_text() for text in panels(figure)[0].get_yticklabels()] == ["Plain", "Other", "all methods"]


@pytest.mark.parametrize("methods", [("Plain",), ("Plain", "Other")])
def test_a_row_has_room_for_its_marks(tmp_path: Path, methods: tuple[str, ...]) -> None:
    """Also that of one method alone: names and numbers around a panel take none of its height."""
    figure = figure_of(*make(tmp_path, noisy, methods=methods))
    figure.canvas.draw()
    for axes in panels(figure):
        height = axes.get_window_extent().height / figure.dpi
        assert height / len(axes.get_yticks()) > 0.9 * effects.ROW


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_of_few_seeds_all_marks_are_open(tmp_path: Path, seeds: int) -> None:
    figure = figure_of(*make(tmp_path, seeds=seeds))
    assert all(is_open for axes in panels(figure) for _, is_open in marks(axes))
    assert "below 6 seeds nothing can be significant" in text_of(figure)
    assert f"over {seeds} seed{'s' if seeds > 1 else ''}, with" in text_of(figure)


def test_a_cell_without_runs_leaves_its_rows_empty(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    for seed in range(6):
        keep(store, ("Other", "Avg", "Cut"), diverged(seed, "the loss is nan"))
    figure = figure_of(manifest, store)
    assert [len(marks(axes)) for axes in panels(figure)[:3]] == [1, 3, 1]
    said = "Without an effect, as runs are missing: Other: Avg, Other: Cut, all methods: Avg, all methods: Cut."
    assert said in text_of(figure)


def test_without_a_grid_it_says_why(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    unpaired = replace(manifest, entries=tuple(replace(entry, unpaired=True) for entry in manifest.entries))
    for shown, results, why in (
        (MANIFEST, store, "its runs are no crossed grid of ingredients"),
        (unpaired, store, "nothing says that these are pairs"),
        (manifest, Store(tmp_path / "empty"), "no run of the grid is there"),
        (replace(manifest, entries=manifest.entries[:1]), store, "no ingredient has all of its cells"),
    ):
        with pytest.raises(style.NotDrawn, match=why):
            effects.draw(load_runs(shown, results))


def test_an_interval_that_would_hide_all_others_is_cut_off(tmp_path: Path) -> None:
    manifest, store = make(tmp_path, noisy, seeds=2, methods=("Plain", *"ABCDEFGH"))
    for seed in range(2):
        cell = ("Plain", "Avg", "none")
        keep(store, cell, run_of({**exact(cell, seed), "aurc": 0.05 + 0.9 * seed}, seed))
    assert "Some intervals go on beyond the axis." in text_of(figure_of(manifest, store))
    assert "beyond the axis" not in text_of(figure_of(*make(tmp_path / "other", noisy)))


@pytest.mark.parametrize("factors", [
    (("averaging", ("Avg", "none")), ("steps", ("Sharp", "none")), ("mixing", ("Mixed", "none"))),
    (("averaging of weights", ("a rather long name", "another name of some length", "none")),
     ("mixing", tuple(f"a recipe of number {number}" for number in range(4)))),
])  # fmt: skip
def test_no_text_is_cut_or_covered(tmp_path: Path, factors: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    """Of five methods with long names; with three ingredients, and with so many that panels stand in two rows."""
    store, entries = Store(tmp_path), []
    for base in (f"Method of a name {index}" for index in range(5)):
        for levels in product(*(levels for _, levels in factors)):
            cell = (base, *levels)
            random = np.random.default_rng([*"".join(cell).encode()])
            for seed in range(5):
                aurc, accuracy = 0.05 + 0.001 * random.normal(), 0.9 + 0.01 * random.normal()
                keep(store, cell, run_of({"aurc": aurc, "accuracy": accuracy, "auroc": 0.8}, seed))
            entries.append(ManifestEntry(" ".join(cell), "m", job_of(cell), tuple(range(5)), base=base, levels=levels))
    figure = figure_of(replace(MANIFEST, entries=tuple(entries), factors=factors), store)
    texts = drawn_texts(figure)
    page = figure.bbox.padded(1)
    assert not [text for text, box in texts.items() if not (page.contains(*box.min) and page.contains(*box.max))]
    covered = [(a, b) for a, b in combinations(texts, 2) if texts[a].padded(-3).overlaps(texts[b].padded(-3))]
    assert not covered
