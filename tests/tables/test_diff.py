"""`diff`: equal jobs to the bit, others beyond chance and a margin, and an exit code that can guard a change."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark.store.manifest import ManifestEntry
from benchmark.store.measuring import made_by_now
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record, plain_record
from benchmark.store.store import Store, folder_of
from benchmark.tables.diff import compare_folders
from tests.conftest import run_here
from tests.tables.test_build import MANIFEST, diverged, record, with_score, write_plain
from tests.tables.test_other_code import made_by_other_code


def make(root: Path, risks: list[float], job: str = "id", label: str = "Ours", **extra: Any) -> Store:
    """A results folder with one method, whose risk at 50 % is given for each seed."""
    store = Store(root)
    for seed, risk in enumerate(risks):
        store.write_record(folder_of("toy", "ours", job, seed), record(seed, {"SR": (0.1, risk)}, **extra))
    entry = ManifestEntry(label, "ours", job, tuple(range(len(risks))))
    store.write_manifest(replace(MANIFEST, entries=(entry,)))
    return store


def stored(store: Store, seed: int) -> tuple[Path, Record]:
    """The folder of a run, and its record."""
    folder = folder_of("toy", "ours", "id", seed)
    found = store.read_record(folder)
    assert found is not None
    return folder, found


LOW = [0.0100, 0.0101, 0.0102, 0.0103, 0.0104]


def test_a_copy_has_not_moved(tmp_path: Path) -> None:
    make(tmp_path / "a", LOW)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    result = run_here("diff", tmp_path / "a", tmp_path / "b")
    assert result.returncode == 0
    assert "5 of 5 runs of the same job are equal to the bit." in result.stdout
    assert "nothing moved" in result.stdout


def test_one_bit_of_a_same_job_is_a_move(tmp_path: Path) -> None:
    make(tmp_path / "a", LOW)
    store = make(tmp_path / "b", LOW)
    folder, run = stored(store, 3)
    classifier = replace(run.measures.classifier, nll=0.5 + 2**-50)
    changed = replace(run, measures=replace(run.measures, classifier=classifier))
    store.write_record(folder, changed)
    result = run_here("diff", tmp_path / "a", tmp_path / "b")
    assert result.returncode == 1
    assert "moved: toy Ours seed 3: same job, other classifier\n" in result.stdout
    risk = [*changed.score("SR").risk]
    risk[100] = 0.02
    store.write_record(folder, with_score(changed, "SR", risk=risk))
    assert "SR risk at 50 %: 1.0300 → 2.0000" in run_here("diff", tmp_path / "a", tmp_path / "b").stdout


@pytest.mark.parametrize(("shift", "moved"), [(0.0009, False), (0.01, True)])
def test_another_machine_may_round_otherwise(tmp_path: Path, shift: float, moved: bool) -> None:
    make(tmp_path / "a", LOW)
    store = make(tmp_path / "b", [risk + shift for risk in LOW])
    for seed in range(4):
        folder, run = stored(store, seed)
        store.write_record(folder, replace(run, provenance=Provenance(environments=("there",))))
    store.write_record(folder_of("toy", "ours", "id", 4), record(4, {"SR": (0.1, LOW[4])}))
    result = run_here("diff", tmp_path / "a", tmp_path / "b")
    assert result.returncode == int(moved), result.stdout
    assert (
        "1 of 5 runs of the same job are equal to the bit.\n4 more are not equal, but were made with another"
        in result.stdout
    )
    assert "2 cells of other jobs or machines compared" in result.stdout
    assert ("moved: toy Ours 50 %: 1.02±0.01 →" in result.stdout) == moved


def test_a_new_measure_is_no_move_and_a_lost_one_is(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", LOW[:1]), make(tmp_path / "b", LOW[:1])
    folder, run = stored(b, 0)
    b.write_record(folder, with_score(run, "SR", class_coverage={"90": [1.0]}))
    assert not compare_folders(a, b).moved
    assert len(compare_folders(b, a).moved) == 1


@pytest.mark.parametrize(
    ("shift", "moved"),
    [(0.0, False), (0.0009, False), (0.0011, True), (0.01, True)],
    ids=["same", "clear but within the margin", "clear and beyond", "far"],
)
def test_other_jobs_move_beyond_chance_and_margin(tmp_path: Path, shift: float, moved: bool) -> None:
    """The spread is 0.014 points, so even 0.09 points are significant: the margin alone keeps them still."""
    make(tmp_path / "a", LOW)
    make(tmp_path / "b", [risk + shift for risk in LOW], job="new")
    result = run_here("diff", tmp_path / "a", tmp_path / "b")
    assert result.returncode == int(moved), result.stdout
    assert "2 cells of other jobs or machines compared" in result.stdout
    assert ("moved: toy Ours 50 %: 1.02±0.01 →" in result.stdout) == moved


def test_noise_is_no_move_and_holm_counts_all_cells(tmp_path: Path) -> None:
    """p ≈ 0.03 of one cell: a move among one, none among two."""
    old = [0.010, 0.012, 0.014, 0.016, 0.018]
    a, b = make(tmp_path / "a", old), make(tmp_path / "b", [risk + 0.0053 for risk in old], job="new")
    assert not compare_folders(a, b).moved
    for store in (a, b):
        (manifest,) = store.manifests()
        store.write_manifest(replace(manifest, coverages=(50,)))
    assert len(compare_folders(a, b).moved) == 1


def test_what_is_gone_is_a_move_and_what_is_new_is_not(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", LOW), make(tmp_path / "b", LOW, label="Renamed")
    found = compare_folders(a, b)
    assert found.gone == ["toy Ours"]
    assert not found.moved
    assert found.notes == ["toy Renamed: new"]
    (manifest,) = b.manifests()
    (b.root / "manifests" / "toy.json").unlink()
    b.write_manifest(replace(manifest, name="other"))
    assert compare_folders(a, b).gone == ["toy"]
    c = make(tmp_path / "c", LOW)
    shutil.rmtree(c.root / folder_of("toy", "ours", "id", 2))
    assert compare_folders(a, c).gone == ["toy Ours seed 2"]
    assert not compare_folders(c, a).gone
    whole, part = run_here("diff", a.root, c.root), run_here("diff", "--part", a.root, c.root)
    assert (whole.returncode, part.returncode) == (1, 0)
    assert "moved: toy Ours seed 2: gone\n1 moved" in whole.stdout


def test_lost_seeds_and_new_divergence_are_moves(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", LOW), make(tmp_path / "b", LOW[:2])
    assert compare_folders(a, b).gone == ["toy Ours seed 2, 3, 4"]
    c = make(tmp_path / "c", LOW, job="new")
    c.write_record(folder_of("toy", "ours", "new", 4), diverged(4, "the loss is nan"))
    expected = [f"toy Ours {row} %: (4/5, 1 diverged), before all there" for row in (100, 50)]
    assert compare_folders(a, c).moved == expected
    assert not compare_folders(c, a).moved


def test_one_seed_cannot_be_tested(tmp_path: Path) -> None:
    found = compare_folders(make(tmp_path / "a", LOW[:1]), make(tmp_path / "b", [0.5], job="new"))
    assert not found.moved
    assert found.notes == ["2 cells cannot be tested: one of the two has only one seed"]


def test_runs_whose_risks_are_not_known_are_not_called_equal(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", LOW), make(tmp_path / "b", [0.9] * 5)
    for folder in b.finished():
        run = b.read_record(folder)
        assert run is not None
        b.write_record(folder, made_by_other_code(run, "risk", "aurc"))
    found = compare_folders(a, b)
    assert (found.count_runs("unknown"), found.count_runs("equal"), found.moved) == (5, 0, [])
    assert found.notes == ["5 runs not compared by aurc, risk: its predictions were not kept"]
    said = run_here("diff", a.root, b.root).stdout
    assert "0 of 5 runs of the same job are equal to the bit." in said
    assert "5 more cannot be compared: see the notes." in said


def test_a_folder_without_results(tmp_path: Path) -> None:
    make(tmp_path / "a", LOW)
    refused = run_here("diff", tmp_path / "a", tmp_path / "b")
    assert refused.returncode == 2
    assert "no results in" in refused.stderr


def write_version_1(store: Store, run: Record) -> None:
    """Write a record as it was before records named a version, and the code behind their measures."""
    plain = plain_record(run)
    del plain["version"], plain["measured_by"]
    write_plain(store, folder_of("toy", "ours", "id", run.seed), plain)


def test_percentiles_of_an_older_version_are_no_move(tmp_path: Path) -> None:
    """They were of float64 scores; what changed since is the rule, and not the run."""
    a, b = make(tmp_path / "a", LOW), make(tmp_path / "b", LOW)
    for seed, risk in enumerate(LOW):
        run = record(seed, {"SR": (0.1, risk)})
        write_version_1(a, with_score(run, "SR", percentile_risk=[0.1] * 201))
        new = with_score(run, "SR", percentile_risk=[0.2] * 201, percentile_coverage=[0.2] * 201)
        b.write_record(folder_of("toy", "ours", "id", seed), new)
    assert compare_folders(a, b).count_runs("equal") == 5
    assert compare_folders(b, b).count_runs("equal") == 5
    write_version_1(a, record(0, {"SR": (0.2, LOW[0])}))
    assert compare_folders(a, b).moved == [
        "toy Ours seed 0: same job, other scores; SR risk at 100 %: 20.0000 → 10.0000"
    ]


def test_what_other_code_measured_is_not_compared(tmp_path: Path) -> None:
    """Without predictions nothing can measure it again, be it one measure or all of a score; the rest is compared."""
    a, b = make(tmp_path / "a", LOW[:1]), make(tmp_path / "b", LOW[:1])
    folder, run = stored(a, 0)
    run = replace(run, measures=replace(run.measures, scores=dict.fromkeys(("SR", "margin"), run.score("SR"))))
    run = replace(run, made_by=made_by_now(run))
    a.write_record(folder, run)

    def moved(score: str, changed: str, *other: str) -> bool:
        b.write_record(folder, made_by_other_code(with_score(run, score, **{changed: [0.5] * 201}), *other))
        assert bool(compare_folders(a, b).moved) == bool(compare_folders(b, a).moved)
        return bool(compare_folders(a, b).moved)

    assert moved("margin", "risk")
    assert not moved("margin", "risk", "margin")
    assert moved("SR", "risk", "margin")
    assert not moved("SR", "auroc", "auroc")
    assert moved("SR", "risk", "auroc")
    assert not moved("SR", "risk", "risk")


def test_scores_that_were_asked_for_later_are_not_compared(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", LOW[:1]), make(tmp_path / "b", LOW[:1])
    folder, run = stored(a, 0)
    more = replace(run.measures, further={"margin": run.score("SR")})
    for store, measures in ((a, more), (b, run.measures)):
        made = replace(run, measures=measures, at_epochs={1: measures})
        store.write_record(folder, replace(made, made_by=made_by_now(made)))
    assert not compare_folders(a, b).moved


def test_another_score_in_the_first_place_is_no_move(tmp_path: Path) -> None:
    """What a method's column is called then means another score; the cells of each score stay what they were."""
    scores = {"SR": (0.1, 0.01), "variance": (0.1, 0.09)}
    for name, order in (("a", ["SR", "variance"]), ("b", ["variance", "SR"])):
        store = make(tmp_path / name, LOW, job=name)
        for seed in range(5):
            jittered = {score: (scores[score][0], scores[score][1] + seed * 1e-4) for score in order}
            store.write_record(folder_of("toy", "ours", name, seed), record(seed, jittered))
    found = compare_folders(Store(tmp_path / "a"), Store(tmp_path / "b"))
    assert (found.moved, found.gone) == ([], [])
    assert ("toy", "Ours+variance 50") in found.tested
