"""The part of the page on a crossed grid: panels and sheets of effects, and nothing where there are no factors."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.report.effects import place_of
from benchmark.report.page import build_page, make_part
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.assemble import assemble
from tests.report.test_report import EVIL, check_structure
from tests.tables.test_build import diverged
from tests.tables.test_effects import exact, keep, lines_of, make, noisy, run_of

GROUP = re.compile(r'<g class="([^"]*)"><title>([^<]*)</title><line [^>]*/><circle cx="([-\d.]+)"')


def page_of(manifest: Manifest, store: Store) -> str:
    return build_page([make_part("task", assemble(manifest, store), store)])


def part_of(page: str) -> str:
    return page.partition(">Effects of ingredients</h3>")[2].partition("<h3")[0]


def test_the_page_shows_panels_and_sheets(tmp_path: Path) -> None:
    """A panel for each of three ingredients and of two responses, with three marks each: open without a star."""
    manifest, store = make(tmp_path, noisy, seeds=9)
    page = page_of(manifest, store)
    check_structure(page)
    part, lines = part_of(page), lines_of(manifest, store)
    assert part.count('class="forest"') == 6
    found = GROUP.findall(part)
    assert len(found) == 18
    for index, (class_, title, _) in enumerate(found):
        name = title.rpartition(": ")[0]
        shown = lines[name].by_response["aurc" if index < 9 else "accuracy"]
        assert class_.endswith(" open") != shown.is_significant
        assert title == f"{name}: {shown.mean:+z.2f} ± {shown.half_width:.2f}, 9 seeds"
    assert {class_.endswith(" open") for class_, *_ in found} == {True, False}
    assert "Main effects on toy data" in part and "Interactions on toy data" in part
    statistics = page.partition("Statistics behind the markers")[2].partition("<h3")[0]
    assert "Main effects" not in statistics


def test_marks_stand_where_their_values_are(tmp_path: Path) -> None:
    manifest, store = make(tmp_path, seeds=5)
    places = {
        title.rpartition(": ")[0]: float(x) for _, title, x in GROUP.findall(part_of(page_of(manifest, store)))[:9]
    }
    means = {name: lines_of(manifest, store)[name].by_response["aurc"].mean for name in places}
    zero = re.search(r'<line x1="([\d.]+)"[^>]* class="zero"', part_of(page_of(manifest, store)))
    assert zero is not None
    for one in places:
        for other in places:
            scale = (places["Other: Avg"] - places["Plain: Cut"]) / (means["Other: Avg"] - means["Plain: Cut"])
            assert places[one] - places[other] == pytest.approx(scale * (means[one] - means[other]), abs=0.25)
    assert place_of(0, (-1, 1)) == place_of(2, (1, 3))


def test_lost_cells_leave_no_mark_and_names_are_escaped(tmp_path: Path) -> None:
    manifest, store = make(tmp_path, seeds=1)
    keep(store, ("Other", "Avg", "Cut"), diverged(0, "the loss is nan"))
    entries = tuple(replace(entry, base=EVIL) if entry.base == "Plain" else entry for entry in manifest.entries)
    page = page_of(replace(manifest, entries=entries), store)
    check_structure(page)
    part = part_of(page)
    assert EVIL not in page
    assert "&lt;script&gt;" in part
    assert len(GROUP.findall(part)) == 2 * (1 + 3 + 1)
    assert ", 1 seed<" in part


def test_without_a_grid_there_is_no_such_part(tmp_path: Path) -> None:
    manifest, store = make(tmp_path)
    for shown in (replace(manifest, factors=()), replace(manifest, entries=manifest.entries[:1])):
        check_structure(page_of(shown, store))
    assert "Effects of ingredients" not in page_of(replace(manifest, factors=()), store)
    cell = ("Plain", "none", "none")
    keep(store, cell, run_of(exact(cell, 9), 9))
    assert "Effects of ingredients" in page_of(manifest, store)
