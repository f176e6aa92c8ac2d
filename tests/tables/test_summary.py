"""One table of several tasks, from hand-made records: changes, intervals, markers, costs, and why cells are empty."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from benchmark.measure.statistics import exact_rank_sum_p, signed_rank_p
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.tables import render
from benchmark.tables.build import MEASURES
from benchmark.tables.render import latex
from benchmark.tables.summary.compare import NOT_RUN, UNPAIRED, Regime, compare_task
from benchmark.tables.summary.sheets import Summary, changes_sheet, letter, summary_sheets
from tests.tables.test_build import diverged, record, with_score

ROWS = {row.measure: row for row in MEASURES}
AURC = ROWS["aurc"]
LEVELS = {"Plain": 1.0, "Better": 0.8, "Worse": 1.3, "Alike": 1.0}
SEEDS = tuple(range(8))
Made = Callable[[str, int], float]


def luck(seed: int) -> float:
    return 0.05 * (1 + 0.02 * seed)


def exact(name: str, seed: int) -> float:
    """Every method has its own share of the baseline's AURC."""
    return LEVELS[name] * luck(seed)


def noisy(name: str, seed: int) -> float:
    random = np.random.default_rng([seed, *name.encode()])
    return exact(name, seed) * (1 if name == "Plain" else float(1 + 0.03 * random.normal()))


def run_of(aurc: float, seed: int, seconds: float | None = None, machine: str = "here") -> Record:
    run = with_score(record(seed, {"SR": (0.1, 0.1)}), "SR", aurc=aurc)
    return replace(run, provenance=Provenance(environments=(machine,), seconds=seconds))


def keep(store: Store, task: str, name: str, run: Record) -> None:
    method = name.lower()
    store.write_record(folder_of(task, method, "id", run.seed), replace(run, task=task, method=method))


def make(
    store: Store, task: str, made: Made = exact, seeds: Iterable[int] = SEEDS, names: Iterable[str] = LEVELS
) -> Manifest:
    seeds, entries = tuple(seeds), []
    for name in names:
        for seed in seeds:
            keep(store, task, name, run_of(made(name, seed), seed, seconds=10 * (1 + len(name)) + seed))
        entries.append(ManifestEntry(name, name.lower(), "id", seeds))
    manifest = Manifest(task, task, f"{task} data", (100, 50), "Better", "Plain", entries=tuple(entries))
    store.write_manifest(manifest)
    return manifest


def summary_of(store: Store, *manifests: Manifest, test: str = "exact", row: Any = AURC) -> Summary:
    regimes = [compare_task(each, "", row, test, store) for each in manifests]
    return summary_with(regimes, test, row)


def summary_with(regimes: list[Regime], test: str = "exact", row: Any = AURC) -> Summary:
    lines = {line.name: line for regime in regimes for line in regime.lines if line.name != "Plain"}
    return Summary(regimes, list(lines.values()), row, test)


def cells_of(summary: Summary) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in changes_sheet(summary).rows}


def test_changes_are_those_that_the_runs_were_made_with(tmp_path: Path) -> None:
    store = Store(tmp_path)
    summary = summary_of(store, make(store, "one"), make(store, "two", seeds=range(3)))
    values = [1000 * luck(seed) for seed in SEEDS]
    spreads = [f"{np.mean(part):.2f}±{np.std(part):.2f}" for part in (values, values[:3])]
    assert cells_of(summary) == {
        "Plain: AURC ×10³": (*spreads, "1"),
        "Better": ("-20.0±0.0 ◦", "-20.0±0.0", "1.16"),
        "Worse": ("+30.0±0.0 •", "+30.0±0.0", "1.00"),
        "Alike": ("+0.0±0.0", "+0.0±0.0", "1.00"),
    }, "three against three cannot be significant"
    sheet = changes_sheet(summary)
    assert sheet.heading == ("method", "one data, n=8", "two data, n=3", "time (Plain = 1)")
    assert (
        "two data: Smallest attainable p, 3 against 3: 0.1000, corrected for 3 comparisons 0.3000; no marker is "
        in ("\n".join(sheet.notes))
    )
    assert "below 0 is better than Plain" in sheet.caption
    assert "two-sided Wilcoxon rank-sum test, exact, of the AURC, level 0.05, Holm-corrected over all" in sheet.caption


@pytest.mark.parametrize("test", ["exact", "paired"])
def test_intervals_and_markers(tmp_path: Path, test: str) -> None:
    store = Store(tmp_path)
    summary = summary_of(store, make(store, "one", noisy), test=test)
    base = np.array([luck(seed) for seed in SEEDS])
    p_values = {}
    for name in ("Better", "Worse", "Alike"):
        values = np.array([noisy(name, seed) for seed in SEEDS])
        changes, found = 100 * (values / base - 1), summary.regimes[0].compared[name]
        assert found.mean == pytest.approx(changes.mean())
        assert found.half_width == pytest.approx(t.ppf(0.975, 7) * changes.std(ddof=1) / sqrt(8))
        p_values[name] = signed_rank_p([*(values - base)]) if test == "paired" else exact_rank_sum_p(base, values)
        assert found.p == pytest.approx(p_values[name])
    ordered = sorted(p_values, key=lambda name: p_values[name])
    corrected = np.maximum.accumulate([(3 - k) * p_values[name] for k, name in enumerate(ordered)])
    for name, p in zip(ordered, corrected, strict=True):
        found = summary.regimes[0].compared[name]
        assert found.corrected_p == pytest.approx(min(1, p))
        assert found.is_significant == (p < 0.05)
    assert {each.verdict for each in summary.regimes[0].compared.values()} >= {"better", "worse"}


def test_the_correction_covers_also_methods_that_are_not_shown(tmp_path: Path) -> None:
    store = Store(tmp_path)
    whole = summary_of(store, make(store, "one", noisy))
    part = replace(whole, lines=whole.lines[:1])
    assert cells_of(part)["Better"] == cells_of(whole)["Better"]
    assert "also those not shown" in changes_sheet(part).caption
    assert "also those not shown" not in changes_sheet(whole).caption


def test_the_direction_is_that_of_the_measure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    manifest = make(store, "one", names=("Plain", "Better"))
    for seed in SEEDS:
        keep(store, "one", "Better", with_score(run_of(0.05, seed), "SR", auroc=0.99 + seed / 1e4))
        keep(store, "one", "Plain", with_score(run_of(0.05, seed), "SR", auroc=0.9 + seed / 1e4))
    summary = summary_of(store, manifest, row=ROWS["auroc"])
    assert cells_of(summary)["Better"][0].startswith("+10.0") and cells_of(summary)["Better"][0].endswith(" ◦")
    assert "Change of the AUROC against Plain" in changes_sheet(summary).caption
    assert "above 0 is better" in changes_sheet(summary).caption


def test_an_empty_cell_has_its_reason(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = make(store, "one")
    entries = (
        *first.entries,
        ManifestEntry("Late", "late", "id", SEEDS),
        ManifestEntry("Lost", "lost", "id", (0, 1)),
        ManifestEntry("Elsewhere", "elsewhere", "id", (90, 91)),
        ManifestEntry("Never", "never", "", (), reason="it needs validation images"),
    )
    for seed in (0, 1):
        keep(store, "one", "Lost", diverged(seed, "the loss is nan"))
        keep(store, "one", "Elsewhere", run_of(0.1, 90 + seed))
    second = make(store, "two", names=("Plain", "Better"))
    summary = summary_of(store, replace(first, entries=entries), second)
    cells = cells_of(summary)
    shown = {name: cells[name][:2] for name in ("Late", "Lost", "Elsewhere", "Never", "Worse")}
    assert shown == {
        "Worse": ("+30.0±0.0 •", "– a"),
        "Late": ("– b", "– a"),
        "Lost": ("– c", "– a"),
        "Elsewhere": ("– d", "– a"),
        "Never": ("– e", "– a"),
    }
    assert changes_sheet(summary).notes[0] == (
        f"– a: {NOT_RUN}; b: no run is finished; c: all of its runs diverged; d: no seed in common with Plain; "
        "e: it needs validation images."
    )
    assert changes_sheet(summary).notes[1:] == tuple(f"{r.title}: {note}" for r in summary.regimes for note in r.notes)
    assert "one data: Provisional: not all runs are there." in changes_sheet(summary).notes


def test_a_score_that_only_some_runs_have(tmp_path: Path) -> None:
    """A row is a method with a score; another method whose name begins alike is another row."""
    store = Store(tmp_path)
    first, second = (make(store, task, names=("Plain", "Better")) for task in ("one", "two"))
    for seed in SEEDS:
        both = with_score(record(seed, {"head": (0.1, 0.1), "SR": (0.1, 0.2)}), "head", aurc=0.1)
        keep(store, "one", "Better", both)
    summary = summary_of(store, first, second)
    assert cells_of(summary)["Better+SR"][1] == "– a"
    assert "a: its runs have no such score" in changes_sheet(summary).notes[0]


def test_without_a_baseline_or_pairs_nothing_is_compared(tmp_path: Path) -> None:
    store = Store(tmp_path)
    no_base = make(store, "one", names=("Better", "Worse"))
    imported = tuple(replace(e, imported=True, unpaired=True) for e in make(store, "two").entries)
    unpaired = replace(make(store, "two"), entries=imported)
    zero = make(store, "three", lambda name, seed: 0.0 if name == "Plain" else 0.1, names=("Plain", "Better"))
    reasons = {
        regime.task: {each.reason for each in regime.compared.values()}
        for regime in summary_of(store, no_base, unpaired, zero).regimes
    }
    assert reasons == {"one": {"no run of the baseline Plain"}, "two": {UNPAIRED}, "three": {"Plain has 0 there"}}


def test_fewer_seeds_than_others_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    manifest = make(store, "one", noisy)
    keep(store, "one", "Better", diverged(7, "the loss is nan"))
    only = tuple(replace(e, seeds=(3,)) if e.label == "Worse" else e for e in manifest.entries)
    cells = cells_of(summary_of(store, replace(manifest, entries=only)))
    assert cells["Better"][0].endswith(" (n=7, 1 diverged)")
    assert cells["Worse"][0].endswith(" (n=1)") and "±" not in cells["Worse"][0]


def test_the_time_is_of_runs_on_the_same_machine(tmp_path: Path) -> None:
    store = Store(tmp_path)
    manifest = make(store, "one", names=("Plain", "Better"), seeds=range(4))
    for seed, (mine, theirs, machine) in enumerate(
        ((10, 20, "here"), (10, 30, "here"), (10, 40, "here"), (1, 99, "x"))
    ):
        keep(store, "one", "Plain", run_of(0.1, seed, float(mine)))
        keep(store, "one", "Better", run_of(0.1, seed, float(theirs), machine))
    (regime,) = summary_of(store, manifest).regimes
    assert regime.compared["Better"].time == 3.0, "the median of 2, 3 and 4"
    (shifted,) = summary_of(store, replace(manifest, set_of="another")).regimes
    assert isnan(shifted.compared["Better"].time), "an evaluation trains nothing"
    assert cells_of(summary_with([shifted]))["Better"][-1] == "–"


def test_the_seeds_it_would_take(tmp_path: Path) -> None:
    store = Store(tmp_path)
    summary = summary_of(store, make(store, "one", noisy), make(store, "two", noisy, seeds=[0]))
    seeds = summary_sheets(summary)[1]
    cells = {row[0]: row[1:] for row in seeds.rows}
    alike = summary.regimes[0].compared["Alike"]
    assert cells == {"Better": ("◦", "–"), "Worse": ("•", "–"), "Alike": (f"{alike.seeds_needed:,.0f}", "–")}
    assert alike.seeds_needed > 8
    lines = {(line["row"], line["task"]): line for line in csv.DictReader(io.StringIO(render.csv([seeds])))}
    assert not lines, "the numbers stand in the lines of the first table"


def test_the_csv_has_every_cell(tmp_path: Path) -> None:
    store = Store(tmp_path)
    summary = summary_of(store, make(store, "one", noisy), make(store, "two", names=("Plain", "Better"), seeds=[0]))
    text = render.csv(summary_sheets(summary))
    lines = {(line["row"], line["task"]): line for line in csv.DictReader(io.StringIO(text))}
    assert len(lines) == 2 * 4
    found, line = summary.regimes[0].compared["Worse"], lines["Worse", "one"]
    assert float(line["change"]) == pytest.approx(found.mean)
    assert [float(line[end]) for end in ("low", "high")] == pytest.approx(
        [found.mean - found.half_width, found.mean + found.half_width]
    )
    assert (line["n"], line["reference_is"], line["seeds_needed"]) == ("8", "better", "")
    assert float(line["p_holm"]) == pytest.approx(found.corrected_p)
    assert lines["Plain", "one"]["unit"] == "AURC ×10³"
    assert lines["Worse", "two"]["reason"] == NOT_RUN
    assert (lines["Better", "two"]["low"], lines["Better", "two"]["n"]) == ("", "1")


def test_every_form_can_be_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sheets = summary_sheets(summary_of(store, make(store, "one", noisy), make(store, "two")))
    assert render.markdown(sheets).count("|") > 40
    text = latex.document(sheets, "summary")
    assert r"\label{tab:summary-changes}" in text and r"\label{tab:summary-seeds}" in text
    short = changes_sheet(summary_of(store, make(store, "one", seeds=range(3))), short=True)
    assert short.notes == ("Too few seeds for a marker: one data.",)
    assert len(short.caption) < 320


def test_letters_never_end() -> None:
    assert [letter(index) for index in (0, 25, 26, 27, 52, 701, 702)] == ["a", "z", "aa", "ab", "ba", "zz", "aaa"]
