"""Measures of evaluation sets against plain loops over the images."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmark.measure.evaluate import measure
from benchmark.measure.metrics import aurc, selective_risk
from benchmark.measure.prediction import CONFIDENCE, Evidence, Prediction
from benchmark.measure.sets.formulas import (
    BALANCED,
    NEW,
    SHIFTED,
    TOGETHER,
    WITH_NEW,
    Judged,
    StoredPart,
    at_share,
    joined,
    measure_set,
    thresholds_for,
    without_logits,
)
from benchmark.measure.sets.parts import CLEAN, PART

RANDOM = np.random.default_rng(0)
COVERAGES = (100.0, 90.0, 80.0, 50.0)


def images(count: int, shift: float = 0.0, classes: int = 4) -> Evidence:
    """Return made predictions, with confidences that tie now and then, the less right the more they are shifted."""
    labels = RANDOM.integers(classes, size=count)
    logits = RANDOM.normal(size=(count, classes)) + (2 - shift) * np.eye(classes)[labels]
    confidence = np.round(np.sort(logits, axis=1)[:, -1] - shift, 1)
    return without_logits(Evidence(Prediction(logits), labels), {"own": confidence, "other": -confidence})


def confidence_of(evidence: Evidence) -> NDArray[np.float64]:
    return np.asarray(evidence.prediction.aux[f"{CONFIDENCE}own"], np.float64)


def errors_of(evidence: Evidence) -> NDArray[np.float64]:
    return (evidence.predicted != evidence.labels).astype(float)


STORED = tuple(StoredPart(f"{kind}-{severity}", kind, severity) for kind in ("fog", "jpeg") for severity in (1, 2, 3))


@pytest.fixture(scope="module")
def shifted() -> tuple[Evidence, list[Evidence]]:
    return images(200), [images(200, 0.4 * (part.severity or 0)) for part in STORED]


def measured(kind, pool, clean, stored, thresholds=None):
    thresholds = {"own": {}, "other": {}} if thresholds is None else thresholds
    return measure_set(kind, pool, clean, stored, thresholds, COVERAGES).parts["own"]


def test_parts_of_a_shift_are_measured_alone_and_together(shifted):
    clean, parts = shifted
    found = measured("corruptions", joined(parts), clean, STORED)
    for stored, part in zip(STORED, parts, strict=True):
        assert found[stored.name].aurc == pytest.approx(aurc(confidence_of(part), errors_of(part)), abs=1e-12)
        assert found[stored.name].error == errors_of(part).mean()
        assert (found[stored.name].kind, found[stored.name].severity) == (stored.kind, stored.severity)
        assert found[stored.name].auroc == pytest.approx(roc_auc_score(1 - errors_of(part), confidence_of(part)))
    for severity in (1, 2, 3):
        own = [part for stored, part in zip(STORED, parts, strict=True) if stored.severity == severity]
        scores, errors = np.concatenate([*map(confidence_of, own)]), np.concatenate([*map(errors_of, own)])
        assert found[f"severity {severity}"].aurc == pytest.approx(aurc(scores, errors), abs=1e-12)
        curve = found[f"severity {severity}"].risk
        assert curve is not None
        assert curve[160] == pytest.approx(selective_risk(scores, errors, 0.8), abs=1e-12)
    scores, errors = np.concatenate([*map(confidence_of, parts)]), np.concatenate([*map(errors_of, parts)])
    assert found[SHIFTED].aurc == pytest.approx(aurc(scores, errors), abs=1e-12)
    assert found[CLEAN].severity == 0
    assert found[CLEAN].aurc == pytest.approx(aurc(confidence_of(clean), errors_of(clean)), abs=1e-12)


def test_together_each_severity_counts_as_much_as_the_clean_images(shifted):
    clean, parts = shifted
    found = measured("corruptions", joined(parts), clean, STORED)[TOGETHER]
    twice = [clean, clean, *parts]  # two kinds for each severity
    assert found.num_images == 8 * 200
    assert found.error == pytest.approx(np.mean([*map(errors_of, twice)]))
    expected = aurc(np.concatenate([*map(confidence_of, twice)]), np.concatenate([*map(errors_of, twice)]))
    assert found.aurc == pytest.approx(expected, abs=1e-12)


def test_a_threshold_keeps_at_least_its_coverage_where_it_was_set_and_is_carried_to_other_images(shifted):
    clean, parts = shifted
    val = images(150)
    thresholds = {
        score: thresholds_for(val.prediction.aux[f"{CONFIDENCE}{score}"], COVERAGES) for score in ("own", "other")
    }
    for coverage, threshold in thresholds["own"].items():
        kept = [c for c in confidence_of(val) if c >= threshold]
        assert len(kept) >= round(150 * float(coverage) / 100)
        assert len([c for c in kept if c > threshold]) < round(150 * float(coverage) / 100)
    found = measured("corruptions", joined(parts), clean, STORED, thresholds)
    for stored, part in zip(STORED, parts, strict=True):
        for coverage, threshold in thresholds["own"].items():
            pairs = list(zip(confidence_of(part), errors_of(part), strict=True))
            kept_errors = [error for confidence, error in pairs if confidence >= threshold]
            at = found[stored.name].kept[coverage]
            assert at.coverage == pytest.approx(len(kept_errors) / 200)
            assert at.risk == pytest.approx(np.mean(kept_errors))


def test_a_threshold_set_on_the_clean_images_themselves_is_the_clean_table():
    clean, shifted = images(200), images(200, 1.0)
    spread = confidence_of(clean) + np.arange(200) * 1e-6  # without ties
    clean.prediction.aux[f"{CONFIDENCE}own"] = spread
    found = measured(
        "shift", joined([shifted]), clean, [StoredPart(SHIFTED)], {"own": thresholds_for(spread, COVERAGES)}
    )
    for coverage in COVERAGES:
        at = found[CLEAN].kept[f"{coverage:g}"]
        assert at.coverage == pytest.approx(coverage / 100)
        assert at.risk == pytest.approx(float(selective_risk(spread, errors_of(clean), coverage / 100)))


def test_a_threshold_carried_to_severity_0_is_a_point_of_the_clean_table(shifted):
    """Also where confidences tie: a threshold keeps whole blocks of them, whose risk the curve has at their end."""
    clean, parts = shifted
    thresholds = {"own": thresholds_for(confidence_of(images(150)), COVERAGES)}
    found = measured("corruptions", joined(parts), clean, STORED, thresholds)[CLEAN]
    table = measure(clean, {"own": confidence_of(clean)}).scores["own"]
    assert found.severity == 0
    assert (found.risk, found.aurc, found.augrc, found.auroc) == (table.risk, table.aurc, table.augrc, table.auroc)
    for coverage in COVERAGES:
        at = found.kept[f"{coverage:g}"]
        risk = selective_risk(confidence_of(clean), errors_of(clean), at.coverage)
        assert at.risk == pytest.approx(float(risk), abs=1e-12)


def test_each_severity_counts_as_much_however_many_images_it_has():
    clean, stored = (
        images(60),
        [StoredPart("fog-1", "fog", 1), StoredPart("jpeg-1", "jpeg", 1), StoredPart("fog-2", "fog", 2)],
    )
    parts = [images(60, 0.5), images(60, 0.5), images(30, 1.0)]
    found = measured("shift", joined(parts), clean, stored)[TOGETHER]
    copies = [clean, clean, *parts[:2], *[parts[2]] * 4]
    assert found.num_images == 360
    assert found.error == pytest.approx(np.mean([np.mean([*map(errors_of, copies[i : i + 2])]) for i in (0, 2, 4)]))
    expected = aurc(np.concatenate([*map(confidence_of, copies)]), np.concatenate([*map(errors_of, copies)]))
    assert found.aurc == pytest.approx(expected, abs=1e-12)


def test_images_that_do_not_come_out_even_count_once_more_at_most():
    rows = Judged(np.arange(7.0), np.zeros(7)).repeated(17).confidence
    counts = np.bincount(rows.astype(int))
    assert (len(rows), counts.min(), counts.max()) == (17, 2, 3)


def test_shifted_images_without_severities_count_once_each():
    clean, shift = images(50), images(80, 1.0)
    found = measured("shift", joined([shift]), clean, [StoredPart(SHIFTED)])[TOGETHER]
    assert found.num_images == 130
    assert found.error == pytest.approx((errors_of(clean).sum() + errors_of(shift).sum()) / 130)


def test_nothing_is_kept_above_every_confidence():
    clean, shifted = images(50), images(50)
    found = measured("shift", joined([shifted]), clean, [StoredPart(SHIFTED)], {"own": {"10": 1e9}})
    assert found[SHIFTED].kept["10"].coverage == 0
    assert found[SHIFTED].kept["10"].risk is None


def test_to_accept_an_image_of_a_new_class_is_an_error():
    clean, new = images(120), images(80, 1.5)
    new = without_logits(Evidence(Prediction(np.eye(4)[new.predicted]), new.labels), {"own": confidence_of(new)}, 4)
    clean = without_logits(
        Evidence(Prediction(np.eye(4)[clean.predicted]), clean.labels), {"own": confidence_of(clean)}
    )
    stored = (StoredPart(CLEAN), StoredPart(NEW))
    found = measured("new", joined([clean, new]), clean, stored, {"own": {"90": 2.0}})
    assert found[NEW].error == 1
    assert found[WITH_NEW].error == pytest.approx((errors_of(clean).sum() + 80) / 200)
    right, wrong = (confidence_of(clean)[errors_of(clean) == kind] for kind in (0, 1))
    for known, auroc in ((right, found[NEW].auroc_right), (wrong, found[NEW].auroc_wrong)):
        pairs = [(a > b) + 0.5 * (a == b) for a in known for b in confidence_of(new)]
        assert auroc == pytest.approx(np.mean(pairs))
    accepted = np.concatenate([confidence_of(clean), confidence_of(new)]) >= 2.0
    losses = np.concatenate([errors_of(clean), np.ones(80)])
    assert found[WITH_NEW].kept["90"].risk == pytest.approx(losses[accepted].mean())
    assert found[NEW].kept["90"].coverage == pytest.approx((confidence_of(new) >= 2.0).mean())


@pytest.mark.parametrize(
    ("known", "new", "share"),
    [(100, 100, 0.5), (100, 1000, 0.5), (1000, 50, 0.5), (900, 100, 0.1), (30, 100, 0.7)],
)
def test_the_share_of_new_images_is_as_asked(known, new, share):
    taken, of_new = at_share(known, new, share)
    assert taken <= known
    assert of_new <= new
    assert of_new / (taken + of_new) == pytest.approx(share, abs=0.01)
    assert taken == known or of_new == new


def test_the_share_is_as_near_as_whole_images_allow():
    assert at_share(30, 100, 0.7) == (30, 70), "30·0.7/0.3 is 70, whatever its rounding says"
    assert at_share(10, 5, 0.01) == (10, 1), "one new image at least, and not one known image beside it"
    assert at_share(1000, 50, 0.99) == (1, 50)


def test_groups_have_the_threshold_of_all_images_and_ties_count_by_their_share():
    pool = images(300)
    groups = {"sex": np.array(["a", "b"])[RANDOM.integers(2, size=300)], "age": RANDOM.integers(3, size=300)}
    pool = Evidence(pool.prediction, pool.labels, predicted=pool.predicted, groups=groups)
    found = measured("groups", pool, pool, ())
    confidence, errors = confidence_of(pool), errors_of(pool)
    assert {name for name in found if " = " in name} == {"sex = a", "sex = b", "age = 0", "age = 1", "age = 2"}
    for coverage in COVERAGES:
        count = int(np.ceil(coverage / 100 * 300 - 1e-9))
        threshold = sorted(confidence)[300 - count]
        tied = [i for i in range(300) if confidence[i] == threshold]
        above = [i for i in range(300) if confidence[i] > threshold]
        share = (count - len(above)) / len(tied)
        weight = np.zeros(300)
        weight[above], weight[tied] = 1, share
        by_class = []
        for name, rows in [
            *((f"sex = {value}", groups["sex"] == value) for value in "ab"),
            *((f"class {label}", pool.labels == label) for label in range(4)),
        ]:
            covered, risk = weight[rows].mean(), (weight * errors)[rows].sum() / weight[rows].sum()
            if name in found:
                at = found[name].kept[f"{coverage:g}"]
                assert (at.coverage, at.risk) == (pytest.approx(covered), pytest.approx(risk))
            else:
                by_class.append((covered, risk))
        balanced = found[BALANCED].kept[f"{coverage:g}"]
        assert (balanced.coverage, balanced.risk) == tuple(map(pytest.approx, np.mean(by_class, axis=0)))
        whole = [found[f"sex = {value}"] for value in "ab"]
        kept = [part.kept[f"{coverage:g}"].coverage * part.num_images for part in whole]
        assert sum(kept) == pytest.approx(count)


def test_the_error_of_balanced_classes_is_the_mean_of_their_errors():
    labels = np.repeat([0, 1], [90, 10])
    logits = np.eye(2)[np.r_[np.zeros(95, int), np.ones(5, int)]]  # the rare class is wrong half of the time
    pool = without_logits(Evidence(Prediction(logits), labels), {"own": RANDOM.random(100)})
    found = measured("groups", pool, pool, ())
    assert found[CLEAN].error == pytest.approx(0.05)
    assert found[BALANCED].error == found[BALANCED].kept["100"].risk == pytest.approx(0.25)


def test_chows_rule_needs_no_logits():
    """An image is kept where its largest probability is at least 1 − ρ; of new classes, every kept one is an error."""
    parts = []
    for count, new_class in ((60, None), (40, 4)):
        labels = RANDOM.integers(4, size=count)
        logits = RANDOM.normal(size=(count, 4)) + 2 * np.eye(4)[labels]
        parts.append((logits, labels if new_class is None else np.full(count, new_class), new_class))
    kept = [without_logits(Evidence(Prediction(u), y), {"own": u.max(axis=1)}, new_class) for u, y, new_class in parts]
    found = measure(joined(kept), {}).classifier.chow_cost
    for percent in (5, 20, 50):
        costs = []
        for logits, labels, _ in parts:
            for row, label in zip(logits, labels, strict=True):
                p = np.exp(row) / np.exp(row).sum()
                costs.append(float(p.argmax() != label) if p.max() >= 1 - percent / 100 else percent / 100)
        assert found[2 * percent] == pytest.approx(np.mean(costs))


def test_chows_rule_keeps_shares_of_votes_at_its_threshold():
    """Nine votes of ten are 1 − 10 %, which float32 would put below it."""
    shares = np.array([[0.9, 0.1], [0.9, 0.1], [0.8, 0.2]])
    votes = Evidence(Prediction(np.log(shares), probabilities=shares), np.array([0, 1, 0]))
    found = measure(without_logits(votes, {"own": shares.max(axis=1)}), {}).classifier.chow_cost
    assert found == measure(votes, {}).classifier.chow_cost
    assert found[20] == pytest.approx((0 + 1 + 0.1) / 3)


def test_groups_of_losses_have_no_classes():
    loss, confidence = RANDOM.random(40), RANDOM.random(40)
    evidence = Evidence(Prediction(np.zeros((40, 0))), np.zeros(0, np.int64), loss=loss)
    pool = replace(without_logits(evidence, {"own": confidence}), groups={"ward": np.arange(40) % 2})
    found = measured("groups", pool, pool, ())
    assert list(found) == [CLEAN, "ward = 0", "ward = 1"]
    assert found["ward = 1"].kept["100"].risk == pytest.approx(loss[1::2].mean())


def test_thresholds_that_a_set_does_not_use_are_not_kept():
    pool = images(40)
    assert measure_set("groups", pool, pool, (), {"own": {"90": 1.0}}, COVERAGES, "none").thresholds == {}
    assert measure_set("shift", joined([pool]), pool, [StoredPart(SHIFTED)], {"own": {"90": 1.0}}, ()).thresholds


def test_parts_are_numbered_in_the_order_in_which_they_are_stored(shifted):
    _, parts = shifted
    pool = joined(parts)
    assert [int((pool.groups[PART] == number).sum()) for number in range(6)] == [200] * 6
    assert np.array_equal(pool.labels[pool.groups[PART] == 2], parts[2].labels)
