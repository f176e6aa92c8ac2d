"""The part of the page on an evaluation set: values, lines and notes; and nothing of it on the page of a task."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark.report.page import build_page, make_part
from benchmark.report.sets.section import set_topics
from benchmark.report.update import beside_task
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.assemble import assemble
from benchmark.tables.columns import load_columns
from tests.report.test_report import EVIL, check_structure
from tests.tables.made_sets import made_set, parts_of

VIEW = re.compile(r'<div class="view"[^>]*>.*?</div>', re.DOTALL)
TITLE = re.compile(r'class="name">([^<]*)<')
DATA = re.compile(r'<script type="application/json" class="data">(.*?)</script>', re.DOTALL)
HEADINGS = {"corruptions": "By severity", "shift": "Under shift", "new": "New classes", "groups": "By group"}


def page_of(manifest: Manifest, store: Store) -> str:
    return build_page([make_part("task", assemble(manifest, store), store)])


def section_of(page: str, kind: str) -> str:
    return page.partition(f">{HEADINGS[kind]}</h3>")[2].partition("<h3")[0]


def views_of(section: str) -> dict[str, str]:
    return {TITLE.search(view).group(1): view for view in VIEW.findall(section)}  # type: ignore[union-attr]


def lines_of(view: str) -> dict[str, dict[str, Any]]:
    found = json.loads(DATA.search(view).group(1))  # type: ignore[union-attr]
    return {line["name"]: {**line, "places": found["places"]} for line in found["lines"]}


@pytest.mark.parametrize("kind", HEADINGS)
def test_each_kind_of_set_has_its_part(tmp_path: Path, kind: str) -> None:
    page = page_of(*made_set(tmp_path, kind))
    check_structure(page)
    section = section_of(page, kind)
    assert section.count('<ul class="legend">') == 1
    assert ("Thresholds carried along" in section) == (kind != "groups")
    assert ("Risk by severity" in section) == (kind == "corruptions")
    assert ("thin: each severity" in section) == (kind == "corruptions")
    assert ("To keep an image of a new class is an error" in section) == (kind == "new")
    assert not re.search(r"https?://|@import|url\(", page)
    assert 'class="mean"' in section, "the lines are there without any script"


def test_a_task_has_no_such_part(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "corruptions")
    assert 'class="plot crowded sets"' not in page_of(replace(manifest, set_of=""), store)
    assert 'class="plot crowded sets"' in page_of(manifest, store)


def test_plots_have_the_values_of_each_seed(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "corruptions")
    views = views_of(section_of(page_of(manifest, store), "corruptions"))
    by_seed = parts_of(store, manifest, "Theirs")
    kept = lines_of(views["threshold for 80 %: coverage kept"])["Theirs"]
    assert kept["places"] == ["severity 0", "severity 1", "severity 2", "severity 3"]
    assert kept["entry"] == 1
    noise = lines_of(views["AURC, noise"])["Theirs"]["points"]
    for seed, parts in by_seed.items():
        for severity in (1, 2, 3):
            shown = kept["points"][str(severity)][str(seed)]
            assert shown == pytest.approx(100 * parts[f"severity {severity}"].kept["80"].coverage, abs=1e-3)
            kinds = [parts[f"{kind}-{severity}"].aurc for kind in ("gaussian noise", "shot noise")]
            assert noise[str(severity)][str(seed)] == pytest.approx(1000 * np.mean(kinds), abs=1e-3)
    curves = lines_of(views["Theirs"])
    assert [*curves] == [f"Theirs, {name}" for name in ("clean", *(f"severity {s}" for s in (1, 2, 3)), "shifted")]
    shown = curves["Theirs, shifted"]
    assert shown["places"][40] == "coverage 80 %"
    for seed, curve in zip(shown["seeds"], shown["curves"], strict=True):
        risk = by_seed[int(seed)]["shifted"].risk
        assert risk is not None
        assert curve[40] == pytest.approx(100 * risk[160], abs=1e-2)


def test_clean_images_are_solid_and_others_dashed_whatever_the_method(tmp_path: Path) -> None:
    section = section_of(page_of(*made_set(tmp_path, "new")), "new")
    for name in ("Ours", "Theirs"):
        lines = re.findall(r'<path class="mean"[^>]*>', views_of(section)[name])
        assert ["stroke-dasharray" in line for line in lines] == [False, True]


def test_lines_stand_where_their_values_are(tmp_path: Path) -> None:
    """The dotted line is as far from the top as the wanted coverage is from the highest value of the axis."""
    views = views_of(section_of(page_of(*made_set(tmp_path, "corruptions")), "corruptions"))
    view = views["threshold for 90 %: coverage kept"]
    top, low = map(float, re.search(r'data-range="\S+ \S+ (\S+) (\S+)"', view).groups())  # type: ignore[union-attr]
    _, above, _, height = map(float, re.search(r'data-frame="([^"]*)"', view).group(1).split())  # type: ignore[union-attr]
    dotted = float(re.search(r'y1="([\d.]+)"[^>]*class="wanted"', view).group(1))  # type: ignore[union-attr]
    assert dotted == pytest.approx(above + (top - 90) / (top - low) * height, abs=0.1)
    line = lines_of(view)["Ours"]["points"]
    path = re.search(r'<path class="mean" d="M([^"]*)"', view).group(1)  # type: ignore[union-attr]
    heights = [float(point.split()[1]) for point in path.split("L")]
    means = [np.mean([*line[str(step)].values()]) for step in range(4)]
    assert heights == pytest.approx([(top - mean) / (top - low) * height for mean in means], abs=0.1)


def test_groups_say_their_risks_and_mark_one_worst_for_each_method(tmp_path: Path) -> None:
    manifest, store = made_set(tmp_path, "groups")
    section = section_of(page_of(manifest, store), "groups")
    assert [*views_of(section)] == ["all test images", "mean over classes", "sex = a", "sex = b", "age = 0", "age = 1"]
    assert section.count('class="ring"') == 2
    parts = [parts["sex = b"] for parts in parts_of(store, manifest, "Ours").values()]
    risk, kept = (100 * np.mean([getattr(part.kept["80"], name) for part in parts]) for name in ("risk", "coverage"))
    error = 100 * np.mean([part.error for part in parts])
    expected = f"Ours: all {error:.2f} %, kept {risk:.2f} %, coverage {kept:.2f} %"
    assert expected in views_of(section)["sex = b"]


def test_without_thresholds_a_note_says_so(tmp_path: Path) -> None:
    section = section_of(page_of(*made_set(tmp_path, "shift", thresholds=False)), "shift")
    assert "There are none: the run has no validation images." in section
    assert "coverage kept" not in section


def test_a_method_that_keeps_nothing_has_no_line(tmp_path: Path) -> None:
    page = page_of(*made_set(tmp_path, "shift", unreachable=("Ours",)))
    check_structure(page)
    views = views_of(section_of(page, "shift"))
    assert [*lines_of(views["threshold for 90 %: risk of what is kept"])] == ["Theirs"]
    assert [*lines_of(views["threshold for 90 %: coverage kept"])] == ["Ours", "Theirs"]


def test_names_are_escaped(tmp_path: Path) -> None:
    for kind in HEADINGS:
        manifest, store = made_set(tmp_path / kind, kind)
        entries = tuple(replace(each, label=EVIL) if each.label == "Ours" else each for each in manifest.entries)
        page = page_of(replace(manifest, entries=entries, reference=EVIL), store)
        check_structure(page)
        assert "<script>alert" not in page


def test_the_page_of_many_methods_stays_small(tmp_path: Path) -> None:
    methods = tuple(f"M{index}" for index in range(40))
    for kind in ("corruptions", "groups"):
        manifest, store = made_set(tmp_path / kind, kind, methods, seeds=1)
        (section,) = set_topics(manifest, load_columns(manifest, store)).values()
        assert len(section) < 400_000
        assert section.count("<title>M39: ") == 0, "of groups, 30 columns are shown"


def test_a_set_stands_behind_its_task() -> None:
    def named(name: str, set_of: str = "") -> Manifest:
        return Manifest(name, name, name, (), "", set_of=set_of)

    manifests = [named("digits-cpu"), named("digits-svhn", "digits"), named("cifar"), named("digits")]
    ordered = [manifest.name for manifest in sorted(manifests, key=beside_task)]
    assert ordered == ["cifar", "digits", "digits-svhn", "digits-cpu"]
