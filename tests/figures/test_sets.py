"""Figures of evaluation sets from made-up records: what is behind the lines, and what is said where there is none."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from benchmark.figures import catalogue, style
from benchmark.figures.catalogue import OF_A_SET, write_task_figures
from benchmark.figures.runs import load_runs
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.columns import load_columns
from benchmark.tables.sets.panels import families, family_of, wanted_coverages
from tests.figures.test_figures import drawn_texts
from tests.tables.made_sets import FAMILIES_MADE, made_set, parts_of

KINDS = ("corruptions", "shift", "new", "groups")
DRAWN = {
    "corruptions": {"severity", "abstention", "shift"},
    "shift": {"abstention", "shift"},
    "new": {"abstention", "shift"},
    "groups": {"groups"},
}


def figure_of(manifest: Manifest, store: Store, name: str) -> Figure:
    with style.house_style():
        return OF_A_SET[name](load_runs(manifest, store))


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if title in axes.get_title("left"))


def drawn(axes: Axes, name: str) -> list[float]:
    """The heights of the points of a line."""
    line = next(line for line in axes.get_lines() if line.get_label() == name)
    return [float(y) for y in np.asarray(line.get_ydata())]


def mean_over_seeds(store: Store, manifest: Manifest, name: str, value):  # type: ignore[no-untyped-def]
    found = [value(parts) for parts in parts_of(store, manifest, name).values()]
    return pytest.approx(np.mean(found, axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_set_has_its_figures_and_the_others_say_why(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those of every task, which are left out here."""
    monkeypatch.setattr(catalogue, "OF_A_TASK", {})
    manifest, store = made_set(tmp_path, kind)
    found = {each.name.removeprefix("toy-set-"): each for each in write_task_figures(manifest, store)}
    assert {name for name in OF_A_SET if found[name].paths} == DRAWN[kind]
    assert all(found[name].reason for name in OF_A_SET if name not in DRAWN[kind])


def test_a_task_has_no_figures_of_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "OF_A_TASK", {})
    manifest, store = made_set(tmp_path, "groups")
    plain = replace(manifest, set_of="")
    assert not [*write_task_figures(plain, store)]
    for name in OF_A_SET:
        with pytest.raises(style.NotDrawn, match="no evaluation set"):
            figure_of(plain, store, name)


def test_severities_are_means_over_kinds_then_over_seeds(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "corruptions")
    figure = figure_of(manifest, store, "severity")

    def aurc(parts, kinds):  # type: ignore[no-untyped-def]
        levels = [[1000 * parts[f"{kind}-{severity}"].aurc for kind in kinds] for severity in (1, 2, 3)]
        return [1000 * parts["clean"].aurc, *np.mean(levels, axis=1)]

    names = ("clean", "severity 1", "severity 2", "severity 3")
    every = [kind for kinds in FAMILIES_MADE.values() for kind in kinds]
    for name in ("Ours", "Theirs"):
        shown = drawn(panel(figure, "mean over kinds"), name)
        assert shown == mean_over_seeds(store, manifest, name, lambda parts: aurc(parts, every))
        for family, kinds in FAMILIES_MADE.items():
            shown = drawn(panel(figure, f"AURC, {family}"), name)
            assert shown == mean_over_seeds(store, manifest, name, lambda parts, kinds=kinds: aurc(parts, kinds))
        shown = drawn(panel(figure, "selective risk at 80 %"), name)
        assert shown == mean_over_seeds(store, manifest, name, lambda parts: [100 * parts[n].risk[160] for n in names])


def test_thresholds_keep_what_the_records_say_and_the_wanted_coverage_is_dotted(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "corruptions")
    figure = figure_of(manifest, store, "abstention")
    names = ("clean", "severity 1", "severity 2", "severity 3")
    for coverage in ("90", "80"):
        axes = panel(figure, f"threshold for {coverage} %: coverage kept")
        kept = mean_over_seeds(
            store, manifest, "Ours", lambda parts, c=coverage: [100 * parts[n].kept[c].coverage for n in names]
        )
        assert drawn(axes, "Ours") == kept
        assert [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == ":"] == [float(coverage)]  # type: ignore[index]
        risk = mean_over_seeds(
            store, manifest, "Ours", lambda parts, c=coverage: [100 * parts[n].kept[c].risk for n in names]
        )
        assert drawn(panel(figure, f"threshold for {coverage} %: risk"), "Ours") == risk


def test_of_new_classes_the_pool_is_beside_the_clean_images(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "new")
    axes = panel(figure_of(manifest, store, "shift"), "Ours")
    by_label = {str(line.get_label()): line for line in axes.get_lines()}
    assert [*by_label] == ["clean", "clean + new"]
    assert [line.get_linestyle() for line in by_label.values()] == ["-", "--"]
    for name in by_label:
        shown = mean_over_seeds(store, manifest, "Ours", lambda parts, n=name: 100 * np.array(parts[n].risk[4:]))
        assert drawn(axes, name) == shown
    axes = panel(figure_of(manifest, store, "abstention"), "threshold for 90 %: coverage kept")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["clean", "new"]
    names = ("clean", "new")
    kept = mean_over_seeds(store, manifest, "Ours", lambda parts: [100 * parts[n].kept["90"].coverage for n in names])
    assert drawn(axes, "Ours") == kept


def test_groups_stand_at_their_risks_and_the_worst_is_a_star(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "groups")
    figure = figure_of(manifest, store, "groups")
    titles = [axes.get_title("left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["all test images", "mean over classes", "sex = a", "sex = b", "age = 0", "age = 1"]
    stars = 0
    risks: dict[str, float] = {}
    for name in titles[2:]:
        bars = [each for each in panel(figure, name).containers if isinstance(each, ErrorbarContainer)]
        mark = bars[0].lines[0]
        assert mark is not None
        risk = [100 * parts[name].kept["80"].risk for parts in parts_of(store, manifest, "Ours").values()]
        assert mark.get_xdata() == pytest.approx(np.mean(risk))
        risks[name] = float(np.mean(risk))
        if mark.get_marker() == "*":
            stars, starred = stars + 1, name
    assert stars == 1
    assert risks[starred] == max(risks.values())


def test_without_thresholds_it_says_why(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "shift", thresholds=False)
    with pytest.raises(style.NotDrawn, match="no validation images"):
        figure_of(manifest, store, "abstention")


def test_a_threshold_that_keeps_nothing_leaves_a_gap(tmp_path: Path) -> None:
    """A mean of the runs that keep something; nothing where none does."""
    manifest, store = made_set(tmp_path, "shift", unreachable=("Ours",))
    axes = panel(figure_of(manifest, store, "abstention"), "threshold for 90 %: risk")
    line = next(line for line in axes.get_lines() if line.get_label() == "Ours")
    assert np.ma.getmaskarray(np.ma.masked_invalid(line.get_ydata())).all()
    assert len(drawn(axes, "Theirs")) == 2


def test_official_names_of_kinds_have_a_family() -> None:
    kinds = ("jpeg compression", "elastic_transform", "Gaussian noise", "frost")
    assert [*map(family_of, kinds)] == ["digital", "digital", "noise", "other kinds"]


def test_coverages_that_the_task_lacks_are_replaced_by_the_nearest(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "groups", coverages=(100.0, 70.0))
    columns = load_columns(manifest, store)
    assert wanted_coverages(columns) == [70.0]
    assert families(columns) == []


@pytest.mark.parametrize("count", [2, 11])
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in sorted(DRAWN[kind])])
def test_no_text_is_cut_or_covered(tmp_path: Path, kind: str, name: str, count: int) -> None:
    methods = tuple(f"Method of a name {index}" for index in range(count))
    figure = figure_of(*made_set(tmp_path, kind, methods, seeds=2), name)
    texts = drawn_texts(figure)
    page = figure.bbox.padded(1)
    assert not [text for text, box in texts.items() if not (page.contains(*box.min) and page.contains(*box.max))]
    covered = [(a, b) for a, b in combinations(texts, 2) if texts[a].padded(-3).overlaps(texts[b].padded(-3))]
    assert not covered
