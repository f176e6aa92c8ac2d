"""The sheet of every score: its numbers by hand, what is left out, and what the manifest remembers."""

import csv
import io
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmark.measure.catalogue import POST_HOC
from benchmark.measure.labels import each_score, match_scores
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.statistics import sign_test_p
from benchmark.report.page import make_part
from benchmark.store.manifest import Manifest, plain_manifest, read_manifest
from benchmark.store.store import PREDICTION, Store, folder_of
from benchmark.tables import render
from benchmark.tables.assemble import Assembled, assemble
from benchmark.tables.model import Sheet
from benchmark.tables.render import latex
from benchmark.tables.render.runs_csv import runs_csv
from benchmark.tables.render.write import tables_text
from tests.tables.test_build import MANIFEST, fill, record, store  # noqa: F401

EVERY = replace(MANIFEST, scores=("all",))
TOO_LARGE = {"kNN", "Mahalanobis", "delta kNN", "delta Mahalanobis", "SIRC", "ViM"}
"""Scores that need features."""


def sheet_of(shown: Assembled) -> Sheet:
    return next(sheet for sheet in shown.statistics if sheet.name == "scores")


def test_numbers_by_hand(store: Store) -> None:  # noqa: F811
    """AURC ×10³ by SR: 10 … 14 and 20 … 24. By its head Theirs has twice that: higher in five runs of five."""
    sheet = sheet_of(assemble(EVERY, store))
    assert sheet.heading == ("score", "Ours", "Theirs", "lower/equal/higher than SR", "sign test p")
    assert sheet.rows == (
        ("SR", "12.00*", "22.00*", "–", "–"),
        ("head", "–", "44.00", "0/0/5", f"{2 / 2**5:.3f}"),
    )
    (note,) = sheet.notes
    assert note.startswith("Not there: ") and note.count(" its predictions were not kept") == 1
    assert all(name in note for name in set(POST_HOC) - {"SR"})


def with_scores(results: Store, method: str, seeds: int, aurc: dict[str, list[float | None]]) -> None:
    """Write runs with these AURC by score and seed; None where a run does not have the score."""
    for seed in range(seeds):
        values = {name: value for name, by_seed in aurc.items() if (value := by_seed[seed]) is not None}
        own, *others = values
        run = record(seed, {name: (0.1, value) for name, value in values.items()})
        scores = run.measures.scores
        parted = replace(run.measures, scores={own: scores[own]}, further={name: scores[name] for name in others})
        fill(results, method, [replace(run, measures=parted)])


def test_wins_are_counted_over_runs_and_tested_over_seeds(tmp_path: Path) -> None:
    """Margin: lower in three runs of Ours, of Theirs higher by more in one seed; energy: equal but in one run."""
    results = Store(tmp_path)
    with_scores(
        results, "ours", 3, {"SR": [0.01, 0.02, 0.03], "margin": [0.009, 0.019, 0.029], "energy": [0.01, 0.02, 0.031]}
    )
    with_scores(
        results, "theirs", 3, {"SR": [0.01, 0.02, 0.03], "margin": [0.02, 0.019, 0.029], "energy": [0.01, 0.02, None]}
    )
    entries = tuple(replace(entry, seeds=(0, 1, 2)) for entry in MANIFEST.entries)
    sheet = sheet_of(assemble(replace(EVERY, entries=entries), results))
    rows = {row[0]: row[1:] for row in sheet.rows}
    assert rows["margin"] == ("19.00*", "22.67", "5/0/1", "1.000")
    assert rows["energy"] == ("20.33", "15.00 (2/3)", "0/4/1", "1.000"), "a mean of other seeds is not the best"
    assert rows["SR"] == ("20.00", "20.00*", "–", "–")
    numbers = {line["score"]: line for line in sheet.numbers if "p" in line}
    assert numbers["margin"]["p"] == pytest.approx(binomtest(2, 3).pvalue)
    assert numbers["energy"]["p"] == pytest.approx(binomtest(0, 1).pvalue)


def test_equal_by_the_noise_of_a_sum_is_equal(tmp_path: Path) -> None:
    results = Store(tmp_path)
    with_scores(results, "ours", 1, {"SR": [0.01], "margin": [0.01 + 1e-17]})
    entries = (replace(MANIFEST.entries[0], seeds=(0,)),)
    rows = sheet_of(assemble(replace(EVERY, entries=entries), results)).rows
    assert rows[:2] == (("SR", "10.00*", "–", "–"), ("margin", "10.00*", "0/1/0", "–"))


@pytest.mark.parametrize(("lower", "higher"), [(0, 5), (3, 3), (1, 7), (6, 0), (2, 1)])
def test_the_sign_test_against_another_library(lower: int, higher: int) -> None:
    assert sign_test_p(lower, higher) == pytest.approx(binomtest(lower, lower + higher).pvalue)


def test_without_a_difference_there_is_no_p() -> None:
    assert isnan(sign_test_p(0, 0))


@pytest.fixture
def with_predictions(tmp_path: Path) -> Store:
    """One run of one method, with logits and validation images, without features."""
    results, draws = Store(tmp_path), np.random.default_rng(0)
    labels = np.arange(60) % 3
    logits = (draws.normal(size=(60, 3)) + 2 * np.eye(3)[labels]).astype(np.float32)
    fill(results, "ours", [record(0, {"SR": (0.1, 0.01)})])
    folder = folder_of("toy", "ours", "id", 0)
    results.write_prediction(folder, PREDICTION, Evidence(Prediction(logits), labels))
    results.write_prediction(folder, "prediction-val.npz", Evidence(Prediction(logits[::-1]), labels[::-1]))
    return results


ONE: Manifest = replace(EVERY, entries=(replace(MANIFEST.entries[0], seeds=(0,)),))


def test_one_run_has_every_score_that_it_can_have(with_predictions: Store) -> None:
    shown = assemble(ONE, with_predictions)
    sheet = sheet_of(shown)
    assert {row[0] for row in sheet.rows} == set(POST_HOC) - TOO_LARGE - {"normalised margin"}
    (note,) = sheet.notes
    assert "normalised margin: it needs the weights of the last layer" in note
    assert "kNN, Mahalanobis, delta kNN, delta Mahalanobis, SIRC, ViM: it needs features" in note
    kept = with_predictions.read_record(folder_of("toy", "ours", "id", 0))
    assert kept is not None and set(kept.measures.further) == {row[0] for row in sheet.rows} - {"SR"}


def test_the_table_keeps_each_methods_own_scores(with_predictions: Store) -> None:
    shown = assemble(ONE, with_predictions)
    assert [column.name for column in shown.columns] == ["Ours"]
    named = assemble(replace(ONE, scores=("energy",)), with_predictions)
    assert [column.name for column in named.columns] == ["Ours+energy", "Ours"]
    assert not [sheet for sheet in named.statistics if sheet.name == "scores"]


def test_every_rendering_has_it(with_predictions: Store) -> None:
    shown = assemble(ONE, with_predictions)
    caption = sheet_of(shown).caption
    assert caption in tables_text(shown)
    assert "| energy |" in render.markdown(shown.statistics).replace("  ", "")
    assert "lower/equal/higher" in latex.document(shown.statistics)
    lines = list(csv.DictReader(io.StringIO(render.csv(shown.statistics))))
    assert {line["score"] for line in lines if line["table"] == "scores"} >= {"SR", "GEN", "temperature"}
    runs = list(csv.DictReader(io.StringIO(runs_csv(shown.manifest, shown.columns))))
    assert {line["score"] for line in runs} == {row[0] for row in sheet_of(shown).rows}
    assert "Every score on toy_data" in str(make_part("task", shown, with_predictions).section)


def test_all_stays_all_in_the_manifest() -> None:
    assert match_scores(["Energy", "knn"]) == ("energy", "kNN")
    assert match_scores(["energy", "ALL"]) == ("all",)
    assert each_score(("all",)) == tuple(POST_HOC)
    assert each_score(("energy",)) == ("energy",)
    assert read_manifest(plain_manifest(EVERY), "here").scores == ("all",)
