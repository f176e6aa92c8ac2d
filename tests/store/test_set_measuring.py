"""The parts of evaluation sets are measured again from what is stored, where other code made them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.scores import softmax_response
from benchmark.measure.sets.formulas import (
    NEW,
    StoredPart,
    joined,
    measure_set,
    rows_of,
    thresholds_for,
    without_logits,
)
from benchmark.measure.sets.parts import PARTS, VERSION, SetMeasures
from benchmark.store.measuring import made_by_now, renew_folder, up_to_date
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION, Store, folder_of

COVERAGES = (100.0, 90.0, 50.0)
RUN = folder_of("toy-task", "cross_entropy", "run", 0)
TRIED = folder_of("toy-task-set", "cross_entropy", "tried", 0)


def images(random: np.random.Generator, shift: float) -> Evidence:
    labels = random.integers(4, size=150)
    logits = random.normal(size=(150, 4)) + (2 - shift) * np.eye(4)[labels]
    return Evidence(Prediction(logits.astype(np.float32)), labels)


def judged(evidence: Evidence, new_class: int | None = None) -> Evidence:
    return without_logits(evidence, {"SR": softmax_response(evidence.prediction.logits)}, new_class)


def stored_run(store: Store, kind: str) -> tuple[Record, SetMeasures]:
    """The record of an evaluation whose parts other code made, and what they really are."""
    random = np.random.default_rng(0)
    test, clean_val = images(random, 0), images(random, 0)
    clean = judged(test)
    checksum = store.write_prediction(RUN, PREDICTION, test)
    run = Record("toy-task", "cross_entropy", "run", 0, {}, measures=measure(clean, {"SR": confidence(clean)}))
    store.write_record(RUN, replace(run, made_by=made_by_now(run), checksums={PREDICTION: checksum}))
    pool, parts = pool_of(kind, random, clean)
    thresholds = {"SR": thresholds_for(softmax_response(clean_val.prediction.logits), COVERAGES)}
    right = measure_set(kind, pool, clean, parts, thresholds if parts else {}, COVERAGES)
    wrong = {"SR": {name: replace(part, aurc=9.0, augrc=9.0) for name, part in right.parts["SR"].items()}}
    tried = Record(
        *("toy-task-set", "cross_entropy", "tried", 0, {"needs": ["other", "run"], "evaluates": {"kind": kind}}),
        measures=measure(pool, {"SR": confidence(pool)}),
        evaluation=replace(right, parts=wrong, version=VERSION - 1),
        checksums={PREDICTION: store.write_prediction(TRIED, PREDICTION, pool)},
    )
    store.write_record(TRIED, replace(tried, made_by=made_by_now(tried)))
    found = store.read_record(TRIED)
    assert found is not None
    return found, right


def confidence(evidence: Evidence) -> np.ndarray:
    return np.asarray(evidence.prediction.aux["confidence.SR"], np.float64)


def pool_of(kind: str, random: np.random.Generator, clean: Evidence) -> tuple[Evidence, tuple[StoredPart, ...]]:
    if kind == "groups":
        return replace(clean, groups={"side": np.where(clean.labels % 2, "odd", "even")}), ()
    if kind == "new":
        some = rows_of(clean, np.arange(100))
        return joined([some, judged(images(random, 2), 4)]), (StoredPart("clean"), StoredPart(NEW))
    parts = tuple(StoredPart(f"fog-{severity}", "fog", severity) for severity in (1, 2))
    return joined([judged(images(random, severity / 2)) for severity in (1, 2)]), parts


@pytest.mark.parametrize("kind", ["shift", "new", "groups"])
def test_they_are_made_again_and_kept(kind: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, right = stored_run(store, kind)
    assert up_to_date(old, TRIED, store).evaluation == right
    kept = store.read_record(TRIED)
    assert kept is not None
    assert kept.evaluation is not None
    assert kept.evaluation.is_known
    assert {name: part.aurc for name, part in kept.evaluation.parts["SR"].items()} == {
        name: part.aurc for name, part in right.parts["SR"].items()
    }
    assert [each.measured for each in renew_folder(store, [TRIED])] == [False]


def test_where_the_run_is_gone_the_record_stays_and_says_why(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, _ = stored_run(store, "shift")
    (tmp_path / RUN / "record.json").unlink()
    new = up_to_date(old, TRIED, store)
    assert new.reasons == {PARTS: "the run that it evaluates is not in this folder"}
    assert new.evaluation is not None
    assert new.evaluation.part("SR", "clean") is None
    assert store.read_record(TRIED) == old


def test_further_scores_are_not_read_of_a_set(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, _ = stored_run(store, "groups")
    new = up_to_date(old, TRIED, store, ["margin"])
    assert new.reasons["margin"].startswith("an evaluation set is read with a method's own scores alone")
