"""`explain`: what is said of a cell is what its table shows, with the runs behind it."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.base.errors import UserError
from benchmark.store.provenance import Provenance
from benchmark.store.store import Store, folder_of
from benchmark.tables.explain import explain
from tests.conftest import run_here, tables_of
from tests.tables.test_build import LATE, MANIFEST, fill, record


@pytest.fixture
def results(tmp_path: Path) -> Store:
    """At 50 %: ours 1.0 … 1.4, theirs 1.3, 2.1 … 2.4, so one pair is inverted and W = 16."""
    store = Store(tmp_path)
    ours = [0.010, 0.011, 0.012, 0.0125, 0.014]
    theirs = [0.013, 0.021, 0.022, 0.023, 0.024]
    for method, risks in (("ours", ours), ("theirs", theirs)):
        made = {"job": f"{method}-id", "provenance": Provenance(f"commit-{method}", environments=("here",))}
        fill(store, method, [record(seed, {"SR": (0.1, risk)}, **made) for seed, risk in enumerate(risks)])
    store.write_manifest(MANIFEST)
    return store


def test_the_runs_and_the_test_behind_a_cell(results: Store) -> None:
    text = explain(MANIFEST, "theirs", 50, results)
    cell = tables_of(MANIFEST, results)[0].cells["50", "Theirs"]
    assert f"Theirs read with SR: {cell.mean}±{cell.std} (mean 2.060000" in text
    assert "1       2.100000    theirs-id  commit-theirs" in text
    assert "4       1.400000    ours-id  commit-ours" in text
    assert "Ours against Theirs: two-sided Wilcoxon rank-sum test, exact" in text
    assert "statistic W = 16 (rank sum of Ours among both), p = 0.015873, smallest attainable p 0.007937" in text
    assert "Ours is significantly better at level 0.05." in text
    assert f"{results.root / folder_of('toy', 'theirs', 'theirs-id', 0).parent}/seed-<n>/record.json" in text


def test_other_tests_and_corrections(results: Store) -> None:
    paired = explain(replace(MANIFEST, test="paired"), "Theirs", 50, results)
    assert "statistic W = 15 (sum of the ranks of the pairs in which Ours is lower), p = 0.062500" in paired
    corrected = explain(replace(MANIFEST, holm="column"), "Theirs", 50, results)
    assert "corrected by Holm over the rows of a column: p = 0.031746" in corrected
    elsewhere = explain(MANIFEST, "Theirs", 49.5, results)
    assert "at coverage 49.5" in elsewhere


def test_the_state_of_an_earlier_epoch_says_so(results: Store) -> None:
    entry = replace(MANIFEST.entries[0], label="Early", epoch=3)
    for seed in range(5):
        folder = folder_of("toy", "ours", "id", seed)
        run = results.read_record(folder)
        assert run is not None
        results.write_record(folder, replace(run, at_epochs={3: run.measures}))
    text = explain(replace(MANIFEST, entries=(*MANIFEST.entries, entry)), "early", 50, results)
    assert "Early read with SR after epoch 3 (at_epochs in the record): 1.19±" in text


def test_what_is_not_compared(results: Store) -> None:
    assert "Ours is the reference: it is compared with nothing." in explain(MANIFEST, "Ours", 50, results)
    assert "No run of the reference is there" in explain(replace(MANIFEST, reference="Late"), "Ours", 50, results)
    with pytest.raises(UserError, match="did you mean 'Theirs'"):
        explain(MANIFEST, "their", 50, results)
    with pytest.raises(UserError, match="Late has no run with a value at coverage 50"):
        explain(replace(MANIFEST, entries=(*MANIFEST.entries, LATE)), "Late", 50, results)


def test_the_command(results: Store, tmp_path: Path) -> None:
    shown = run_here("explain", "toy", "theirs", "50", "--results", results.root)
    assert (shown.returncode, "W = 16" in shown.stdout) == (0, True)
    turned = run_here("explain", "toy", "ours", "50", "--reference", "theirs", "--results", results.root)
    assert "W = 39" in turned.stdout
    assert "Theirs is significantly worse" in turned.stdout
    for words, message in (
        (("toys", "ours", "50"), "did you mean 'toy'"),
        (("toy", "ours", "150"), "a number from 0 to 100, got '150'"),
        (("toy", "ours", "50", "--reference", "x"), "not among the methods shown"),
    ):
        refused = run_here("explain", *words, "--results", results.root)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    assert run_here("explain", "toy", "ours", "50", "--results", tmp_path / "none").returncode == 2
