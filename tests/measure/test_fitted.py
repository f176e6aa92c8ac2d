"""Scores that compare an image with others, and those of the last layer: oracles, loops, and each known trap."""

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors

from benchmark.check.scores import MadeUpRun, made_up_run, score_findings
from benchmark.measure import fitted
from benchmark.measure.catalogue import POST_HOC, Unavailable, any_run_scores, confidence_of
from benchmark.measure.fitted import (
    TEMPERATURES,
    best_temperature,
    delta_mahalanobis,
    delta_nearest_neighbours,
    feature_norm,
    heated_response,
    nearest_mean,
    relative_uncertainty,
    relative_uncertainty_matrix,
    sirc,
    virtual_logit,
)
from benchmark.measure.metrics import aurc
from benchmark.measure.prediction import Classifier, Evidence, Prediction
from benchmark.measure.scores import (
    generalised_entropy,
    logit_margin,
    mahalanobis,
    margin,
    normalised_margin,
    softmax_response,
)
from benchmark.measure.versions import OF_VERSION_1, measure_versions, score_version
from tests.fixtures import F6_LOGITS, F6_RESPONSE

NEW = (
    "logit margin",
    "normalised margin",
    "GEN",
    "Rel-U",
    "delta kNN",
    "delta Mahalanobis",
    "SIRC",
    "ViM",
    "temperature",
)
DRAWS = np.random.default_rng(0)
TEST, KNOWN, LABELS = DRAWS.normal(size=(9, 4)), DRAWS.normal(size=(40, 4)), np.arange(40) % 3
WRONG = DRAWS.random(40) < 0.4
LOGITS, KNOWN_LOGITS = 2 * DRAWS.normal(size=(9, 3)), 2 * DRAWS.normal(size=(40, 3))
WEIGHT, BIAS = DRAWS.normal(size=(3, 4)), DRAWS.normal(size=3)


def probabilities(logits: NDArray[np.float64]) -> Iterator[list[float]]:
    """Softmax by loops, of small logits."""
    for row in logits.tolist():
        powers = [exp(u) for u in row]
        yield [power / sum(powers) for power in powers]


def test_the_logit_margin_is_the_log_odds_of_the_first_two() -> None:
    first = [sorted(p, reverse=True) for p in probabilities(F6_LOGITS)]
    assert logit_margin(F6_LOGITS) == pytest.approx([log(p[0] / p[1]) for p in first])
    assert logit_margin(F6_LOGITS) == pytest.approx([1.5, 0.1, 1.5, 1.0, 2.5, 0.5])
    pair = np.log([[0.6, 0.3, 0.05, 0.05], [0.4, 0.2, 0.2, 0.2], [0.45, 0.19, 0.18, 0.18]])
    assert np.argsort(logit_margin(pair)).tolist() != np.argsort(margin(pair)).tolist()
    assert logit_margin(F6_LOGITS + 7) == pytest.approx(logit_margin(F6_LOGITS))


def test_the_normalised_margin_keeps_the_class_that_the_classifier_says() -> None:
    """Of (2, 1) over (4, 1) the second class is ahead; with its arg-max again, another classifier would be scored."""
    found = normalised_margin(np.array([[2.0, 1.0]]), np.array([[4.0, 0.0], [0.0, 1.0]]))
    assert found.tolist() == [0.5 - 1.0]
    expected = []
    for u in LOGITS.tolist():
        scaled = [u[k] / sum(w * w for w in WEIGHT[k].tolist()) ** 0.5 for k in range(3)]
        own = u.index(max(u))
        expected.append(min(scaled[own] - scaled[j] for j in range(3) if j != own))
    assert normalised_margin(LOGITS, WEIGHT) == pytest.approx(expected)
    again = np.sort(LOGITS / np.linalg.norm(WEIGHT, axis=1), axis=1)
    assert not np.allclose(normalised_margin(LOGITS, WEIGHT), again[:, -1] - again[:, -2])


def test_equal_norms_leave_the_order_of_the_logit_margin() -> None:
    assert normalised_margin(F6_LOGITS, np.eye(3) * 2) == pytest.approx(logit_margin(F6_LOGITS) / 2)


def test_generalised_entropy_by_its_definition() -> None:
    expected = [-sum((q * (1 - q)) ** 0.1 for q in p) for p in probabilities(F6_LOGITS)]
    assert generalised_entropy(F6_LOGITS) == pytest.approx(expected)
    largest = [sorted(p)[-2:] for p in probabilities(F6_LOGITS)]
    assert generalised_entropy(F6_LOGITS, 0.3, 2) == pytest.approx(
        [-sum((q * (1 - q)) ** 0.3 for q in p) for p in largest]
    )
    many = DRAWS.normal(size=(4, 150))
    chosen = np.sort(softmax(many, axis=1), axis=1)[:, -100:]
    assert generalised_entropy(many) == pytest.approx(-((chosen * (1 - chosen)) ** 0.1).sum(axis=1))


@pytest.mark.parametrize("name", ["logit margin", "GEN", "SIRC"])
def test_no_ties_where_probabilities_round_to_one(name: str) -> None:
    gaps = np.array([[float(gap), 0.0, -1.0] for gap in (10, 50, 100, 200, 700)])
    scores = {
        "logit margin": logit_margin(gaps),
        "GEN": generalised_entropy(gaps),
        "SIRC": sirc(gaps, np.ones(5), np.array([0.5, 1.5])),
    }
    assert (np.diff(scores[name]) > 0).all()


def pair_costs(logits: NDArray[np.float64], wrong: NDArray[np.bool_], weight: float) -> list[list[float]]:
    """D of Rel-U by loops."""
    rows, classes = list(probabilities(logits)), range(logits.shape[1])
    kinds = [[p for p, is_wrong in zip(rows, wrong, strict=True) if is_wrong == kind] for kind in (True, False)]
    means = [[[sum(p[i] * p[j] for p in kind) / len(kind) for j in classes] for i in classes] for kind in kinds]
    return [
        [max(0.0, weight * means[0][i][j] - (1 - weight) * means[1][i][j]) if i != j else 0.0 for j in classes]
        for i in classes
    ]


@pytest.mark.parametrize("weight", [0.5, 0.8])
def test_relative_uncertainty_by_loops(weight: float) -> None:
    costs = pair_costs(KNOWN_LOGITS, WRONG, weight)
    assert relative_uncertainty_matrix(KNOWN_LOGITS, WRONG, weight) == pytest.approx(np.array(costs))
    expected = [-sum(p[i] * costs[i][j] * p[j] for i in range(3) for j in range(3)) for p in probabilities(LOGITS)]
    assert relative_uncertainty(LOGITS, KNOWN_LOGITS, WRONG, weight) == pytest.approx(expected)


def test_relative_uncertainty_reads_the_last_logit_of_an_odd_number() -> None:
    """Wrong images hesitate between the first and the last of three classes: without the last, D would be zero."""
    known = np.array([[3.0, 0.0, 3.0], [3.0, 0.0, 2.9], [6.0, 0.0, 0.0], [0.0, 6.0, 0.0]])
    costs = relative_uncertainty_matrix(known, np.array([True, True, False, False]))
    assert costs.shape == (3, 3) and costs[0, 2] > 0.1
    one, other = relative_uncertainty(
        np.array([[3.0, 0.0, 3.0], [3.0, 0.0, -3.0]]), known, WRONG[:4] | [1, 1, 0, 0] > 0
    )
    assert one < other


def test_relative_uncertainty_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = relative_uncertainty(LOGITS, KNOWN_LOGITS, WRONG)
    monkeypatch.setattr("benchmark.measure.metrics.BLOCK", 12)
    assert relative_uncertainty(LOGITS, KNOWN_LOGITS, WRONG) == pytest.approx(whole)


@pytest.mark.parametrize("k", [1, 5, 25])
def test_delta_nearest_neighbours_against_another_library(k: int) -> None:
    """There are fewer than 25 wrong ones, and of these all count."""
    unit = [f / np.linalg.norm(f, axis=1, keepdims=True) for f in (TEST, KNOWN)]
    means = []
    for part in (unit[1][~WRONG], unit[1][WRONG]):
        distances = NearestNeighbors(n_neighbors=min(k, len(part))).fit(part).kneighbors(unit[0])[0]
        means.append(-np.log(distances**2 + 1e-6).mean(axis=1))
    assert WRONG.sum() < 25
    assert delta_nearest_neighbours(TEST, KNOWN, WRONG, k) == pytest.approx(means[0] - means[1])


def test_delta_nearest_neighbours_is_finite_on_a_known_image_and_needs_few_numbers_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = delta_nearest_neighbours(np.r_[TEST, KNOWN], KNOWN, WRONG, 1)
    assert np.isfinite(whole).all()
    monkeypatch.setattr(fitted, "PAIRS", 50)
    assert delta_nearest_neighbours(np.r_[TEST, KNOWN], KNOWN, WRONG, 1) == pytest.approx(whole)


def test_delta_mahalanobis_against_another_library() -> None:
    """Class 2 has no wrong sample: there is no mean of it."""
    wrong = WRONG & (LABELS != 2)
    nearest = []
    for part in (wrong, ~wrong):
        f, labels = KNOWN[part], LABELS[part]
        means = {c: f[labels == c].mean(axis=0) for c in np.unique(labels)}
        covariance = EmpiricalCovariance(assume_centered=True).fit(f - np.stack([means[c] for c in labels]))
        nearest.append(np.min([covariance.mahalanobis(TEST - mean) for mean in means.values()], axis=0))
    assert delta_mahalanobis(TEST, KNOWN, LABELS, wrong) == pytest.approx(nearest[0] - nearest[1])


def test_nearest_mean_is_minus_the_mahalanobis_score(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = -mahalanobis(TEST, KNOWN, LABELS)
    assert nearest_mean(TEST, KNOWN, LABELS) == pytest.approx(expected)
    far = np.full(4, 1e4)
    assert nearest_mean(TEST + far, KNOWN + far, LABELS) == pytest.approx(expected)
    monkeypatch.setattr(fitted, "PAIRS", 8)
    assert nearest_mean(TEST, KNOWN, LABELS) == pytest.approx(expected)


def test_nearest_mean_leaves_out_directions_without_spread() -> None:
    flat, flat_test = np.c_[KNOWN, KNOWN[:, :2].sum(axis=1)], np.c_[TEST, TEST[:, :2].sum(axis=1)]
    assert nearest_mean(flat_test, flat, LABELS) == pytest.approx(nearest_mean(TEST, KNOWN, LABELS), rel=1e-6)
    assert nearest_mean(TEST, KNOWN[:3], np.arange(3)).tolist() == [0.0] * 9, "one sample of each class has no spread"


def test_sirc_has_the_oracle_of_f6() -> None:
    second = np.array([4.0, 1, 6, 3, 5, 2])
    shift = np.array([3.0, 5.0])  # mean 4, std 1: a = 1, b = 1
    expected = [1.49131067, -0.23560099, 1.59215869, 0.96741627, 2.13164605, 0.47760723]
    assert sirc(F6_LOGITS, second, shift) == pytest.approx(expected, abs=1e-8)
    by_definition = -np.log(1 - F6_RESPONSE) - np.log(1 + np.exp(-(second - 1)))
    assert sirc(F6_LOGITS, second, shift) == pytest.approx(by_definition, abs=1e-7)


def test_sirc_of_constant_or_absurd_norms_is_a_number() -> None:
    assert np.isfinite(sirc(F6_LOGITS, np.arange(6.0), np.ones(5))).all()
    assert np.isfinite(sirc(F6_LOGITS, np.array([0, 1e9, 1, 2, 3, 4]), np.array([0.9, 1.1]))).all()


def test_the_norm_of_features_is_the_sum_of_their_magnitudes() -> None:
    assert feature_norm(TEST) == pytest.approx([sum(abs(x) for x in f) for f in TEST.tolist()])


def virtual_logit_by_projection(dimension: int) -> NDArray[np.float64]:
    """ViM through singular vectors of the shifted training features."""
    origin = -np.linalg.lstsq(WEIGHT, BIAS, rcond=None)[0]
    rows = np.linalg.svd(KNOWN - origin)[2][:dimension]

    def residual(f: NDArray[np.float64]) -> float:
        shifted = f - origin
        return float(np.linalg.norm(shifted - rows.T @ (rows @ shifted)))

    logits = KNOWN @ WEIGHT.T + BIAS
    alpha = logits.max(axis=1).mean() / np.mean([residual(f) for f in KNOWN])
    tested = TEST @ WEIGHT.T + BIAS
    return np.array([logsumexp(u) - alpha * residual(f) for u, f in zip(tested, TEST, strict=True)])


@pytest.mark.parametrize("dimension", [None, 1, 3])
def test_virtual_logit_by_projection(dimension: int | None) -> None:
    logits, train_logits = (f @ WEIGHT.T + BIAS for f in (TEST, KNOWN))
    found = virtual_logit(logits, TEST, train_logits, KNOWN, WEIGHT, BIAS, dimension)
    assert found == pytest.approx(virtual_logit_by_projection(2 if dimension is None else dimension))


def test_virtual_logit_where_nothing_is_left_over_is_the_energy() -> None:
    logits, train_logits = (f @ WEIGHT.T + BIAS for f in (TEST, KNOWN))
    found = virtual_logit(logits, TEST, train_logits, KNOWN, WEIGHT, BIAS, 4)
    assert found == pytest.approx(logsumexp(logits, axis=1))


def test_the_published_dimensions() -> None:
    widths = (2, 64, 512, 767, 768, 2047, 2048)
    assert [fitted.principal_dimension(width) for width in widths] == [1, 32, 256, 383, 512, 512, 1000]


def test_the_temperature_is_the_best_of_all() -> None:
    draws = np.random.default_rng(3)
    logits = 3 * draws.normal(size=(300, 4))
    wrong = draws.random(300) < 1 / (1 + np.exp(softmax_response(logits / 2.5)))
    risks = {t: aurc(softmax_response(logits / t), wrong) for t in (step / 100 for step in range(1, 200))}
    best = best_temperature(logits, wrong)
    assert set(risks) == set(TEMPERATURES) and best != 1
    assert risks[best] == pytest.approx(min(risks.values()), abs=1e-12)
    assert heated_response(logits, best) == pytest.approx(softmax_response(logits / best))


def test_the_temperature_stays_1_where_none_is_better() -> None:
    two_classes = np.column_stack([DRAWS.normal(size=50), np.zeros(50)])
    assert best_temperature(two_classes, DRAWS.random(50) < 0.5) == 1, "the order of two classes never changes"
    assert best_temperature(KNOWN_LOGITS, np.zeros(40, bool)) == 1, "without an error all are equal"


def test_of_equal_temperatures_the_nearest_to_1_is_taken_also_at_the_edge() -> None:
    """Of the second image one class is near the first: the colder, the more it counts. Below some T all are alike."""
    logits = np.array([[2.0, 0.0, 0.0, 0.0, 0.0], [1.9, 0.6, -9.0, -9.0, -9.0]])
    wrong = np.array([False, True])
    risks = {t: aurc(softmax_response(logits / t), wrong) for t in TEMPERATURES}
    better = [t for t in TEMPERATURES if risks[t] < risks[1.0]]
    assert better and best_temperature(logits, wrong) == max(better) < 1
    assert best_temperature(logits, ~wrong) == 1
    assert np.isfinite(heated_response(1e4 * logits, 0.01)).all()


@pytest.mark.parametrize("name", NEW)
def test_each_keeps_the_contract_of_scores(name: str) -> None:
    """One finite number per image, whatever the other test images and their labels are."""
    findings = list(score_findings(POST_HOC[name]))
    assert findings and all(finding.holds for finding in findings), findings


def with_all_right(run: MadeUpRun) -> MadeUpRun:
    validation = replace(run.validation, labels=run.validation.prediction.logits.argmax(axis=1))
    return replace(run, validation=validation)


def test_all_of_them_are_there_and_fitted_on_the_splits_that_they_should_be() -> None:
    """A changed label or feature of a split changes a score that is fitted on it, and no other."""
    assert set(NEW) < set(any_run_scores())
    run = made_up_run()
    others = {
        "validation": replace(run, validation=replace(run.validation, labels=np.roll(run.validation.labels, 1))),
        "train": replace(run, train=of_other_features(run.train)),
    }
    moved = {
        split: {name for name in NEW if not np.array_equal(POST_HOC[name](run), POST_HOC[name](other))}
        for split, other in others.items()
    }
    assert moved["validation"] >= {"Rel-U", "delta kNN", "delta Mahalanobis"}
    assert moved["validation"] <= {"Rel-U", "delta kNN", "delta Mahalanobis", "temperature"}
    assert moved["train"] == {"SIRC", "ViM"}


def of_other_features(split: Evidence) -> Evidence:
    features = split.prediction.features
    assert features is not None
    return replace(split, prediction=replace(split.prediction, features=features * 2 + 1))


def test_without_a_wrong_validation_image_there_is_nothing_to_compare_with() -> None:
    run = with_all_right(made_up_run())
    for name in ("Rel-U", "delta kNN", "delta Mahalanobis"):
        with pytest.raises(Unavailable, match="all of them are right"):
            POST_HOC[name](run)


def test_a_run_without_features_says_what_it_needs() -> None:
    run = made_up_run()
    bare = Evidence(Prediction(run.test.prediction.logits), run.test.labels)
    for name in ("delta kNN", "delta Mahalanobis", "SIRC", "ViM"):
        with pytest.raises(Unavailable, match="--keep-features"):
            confidence_of(name, replace(run, test=bare))


def test_a_layer_without_bias_has_its_origin_at_zero() -> None:
    run = made_up_run()
    assert run.classifier.bias.tolist() == [0] * 5
    shifted = replace(run, classifier=Classifier(run.classifier.weight, np.ones(5)))
    assert not np.array_equal(POST_HOC["ViM"](run), POST_HOC["ViM"](shifted))


BEFORE = {**OF_VERSION_1.scores, **OF_VERSION_1.measures}


@pytest.mark.parametrize("name", BEFORE)
def test_a_new_score_makes_no_stored_measure_outdated(name: str) -> None:
    assert measure_versions().get(name, score_version(name)) == BEFORE[name]


def test_the_hash_of_a_fitted_score_is_of_all_that_it_calls() -> None:
    versions = {name: score_version(name) for name in NEW}
    assert all(versions.values()) and len(set(versions.values())) == len(NEW)
