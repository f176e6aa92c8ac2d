"""Scores against oracle values, and where the plain probability would saturate."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from benchmark.measure.evaluate import measure_scores
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.scores import (
    abstention,
    as_public_codes,
    cosine_logit,
    disagreement,
    doctor,
    energy,
    mahalanobis,
    margin,
    max_logit,
    max_logit_pnorm,
    nearest_neighbour,
    negative_entropy,
    softmax_response,
)
from tests.fixtures import F6_LABELS, F6_LOGITS, F6_RESPONSE


def test_softmax_response_is_the_log_odds_of_f6() -> None:
    expected = [1.29858672, -0.54439666, 1.37307199, 0.68673831, 2.02592302, 0.18673831]
    assert softmax_response(F6_LOGITS) == pytest.approx(expected, abs=1e-8)
    assert 1 / (1 + np.exp(-softmax_response(F6_LOGITS))) == pytest.approx(F6_RESPONSE, abs=1e-8)


def test_softmax_response_does_not_saturate() -> None:
    gaps = np.array([[float(gap), 0.0, 0.0] for gap in (10, 50, 100, 200)])
    assert len(set(softmax(gaps, axis=1).max(axis=1))) < 4
    assert (np.diff(softmax_response(gaps)) > 0).all()


def test_abstention_is_minus_log_of_its_probability() -> None:
    outputs = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]])
    expected = -np.log(softmax(outputs, axis=1)[:, -1])
    assert abstention(outputs[:, :-1], outputs[:, -1]) == pytest.approx(expected)


def test_abstention_does_not_saturate_at_either_end() -> None:
    logits = np.zeros((6, 3))
    head = np.array([300.0, 100.0, 40.0, -40.0, -100.0, -1000.0])
    assert (np.diff(abstention(logits, head)) > 0).all()


def test_the_cosine_logit_is_the_pnorm_without_a_centre_and_has_no_length() -> None:
    norms = [sum(u * u for u in row) ** 0.5 for row in F6_LOGITS.tolist()]
    expected = [max(row) / norm for row, norm in zip(F6_LOGITS.tolist(), norms, strict=True)]
    assert cosine_logit(F6_LOGITS).tolist() == pytest.approx(expected)
    assert cosine_logit(50 * F6_LOGITS).tolist() == pytest.approx(expected)
    centred = F6_LOGITS - F6_LOGITS.mean(axis=1, keepdims=True)
    assert cosine_logit(centred).tolist() == pytest.approx(max_logit_pnorm(F6_LOGITS, 2).tolist())
    assert cosine_logit(np.zeros((2, 3))).tolist() == [0, 0]
    assert cosine_logit(np.array([[-1.0, -2.0]]))[0] < 0


def test_a_disagreement_comes_before_the_softmax_response_at_any_gap() -> None:
    gaps = np.array([[float(gap), 0.0, 0.0] for gap in (0.1, 20, 50, 200, 600)])
    never = disagreement(gaps, np.zeros(5))
    assert (np.diff(never) > 0).all()
    late = disagreement(gaps, np.full(5, 2e-6))
    assert late.max() < never.min()
    assert (np.diff(late)[:2] > 0).all()


def test_oracles_of_the_post_hoc_scores() -> None:
    assert -negative_entropy(F6_LOGITS) == pytest.approx(
        [0.62158460, 1.09528727, 0.57717555, 0.83239558, 0.43713601, 0.95280756], abs=1e-8
    )
    assert energy(F6_LOGITS) == pytest.approx(
        [2.24131130, 1.20194285, 3.22580205, 2.40760596, 3.12387296, 1.80413061], abs=1e-8
    )
    assert 1 - np.exp(-margin(F6_LOGITS)) == pytest.approx(
        [0.61030664, 0.03494041, 0.61984582, 0.42051248, 0.81097063, 0.21505043], abs=1e-8
    )
    assert -doctor(F6_LOGITS) == pytest.approx(
        [0.53983741, 1.98018168, 0.49503331, 0.95869865, 0.26943438, 1.36138661], abs=1e-8
    )
    assert max_logit_pnorm(F6_LOGITS, 2) == pytest.approx(
        [0.70710678, 0.70710678, 0.67115606, 0.70710678, 0.80655913, 0.61721340], abs=1e-8
    )
    assert max_logit_pnorm(F6_LOGITS, 5) == pytest.approx(
        [0.87055056, 0.87055056, 0.82538124, 0.87055056, 0.97921793, 0.75587568], abs=1e-8
    )
    assert max_logit(F6_LOGITS).tolist() == [2, 0.2, 3, 2, 3, 1.2]
    assert max_logit_pnorm(F6_LOGITS, 0) == pytest.approx(F6_LOGITS.max(1) - F6_LOGITS.mean(1))


@pytest.mark.parametrize("score", [softmax_response, margin, negative_entropy, doctor])
def test_no_ties_where_probabilities_round_to_one(score: Callable[[Any], Any]) -> None:
    gaps = np.array([[float(gap), 0.0, -1.0] for gap in (10, 50, 100, 200)])
    assert (np.diff(score(gaps)) > 0).all()


def test_pnorm_does_not_depend_on_temperature_and_bears_equal_logits() -> None:
    assert max_logit_pnorm(F6_LOGITS / 7, 3) == pytest.approx(max_logit_pnorm(F6_LOGITS, 3))
    assert max_logit_pnorm(np.ones((1, 4)), 2).tolist() == [0.0]


def test_nearest_neighbour_against_all_distances() -> None:
    draws = np.random.default_rng(0)
    test, train = draws.normal(size=(9, 4)), draws.normal(size=(30, 4))
    unit = [f / np.linalg.norm(f, axis=1, keepdims=True) for f in (test, train)]
    distances = np.sort(((unit[0][:, None] - unit[1]) ** 2).sum(axis=2), axis=1)
    assert nearest_neighbour(test, train, k=3) == pytest.approx(-distances[:, 2])
    assert nearest_neighbour(test, train, k=99) == pytest.approx(-distances[:, -1]), "no more than there are"


def test_mahalanobis_against_the_definition() -> None:
    draws = np.random.default_rng(0)
    test, train, labels = draws.normal(size=(9, 3)), draws.normal(size=(60, 3)), np.arange(60) % 4
    means = [train[labels == c].mean(axis=0) for c in range(4)]
    covariance = sum(np.outer(f - means[c], f - means[c]) for f, c in zip(train, labels, strict=True)) / 60
    inverse = np.linalg.inv(covariance)
    expected = [-min((f - mean) @ inverse @ (f - mean) for mean in means) for f in test]
    assert mahalanobis(test, train, labels) == pytest.approx(expected)
    flat = np.c_[train, train[:, 0]]
    assert np.isfinite(mahalanobis(np.c_[test, test[:, 0]], flat, labels)).all(), "rank-deficient features"


def test_a_score_that_is_no_number_is_refused_and_never_ranked() -> None:
    evidence = Evidence(Prediction(F6_LOGITS), F6_LABELS)
    with pytest.raises(ValueError, match="score odd is not finite for 1 image"):
        measure_scores(evidence, {"odd": np.array([1.0, np.nan, 0.5, 0.2, 0.1, 0.3])})


def test_percentiles_rank_as_the_public_codes_do() -> None:
    """Three of ten logit gaps are beyond 17: float32 softmax makes them one tied block, which is kept whole."""
    gaps = np.array([1.0, 20, 3, 25, 5, 30, 7, 8, 9, 2])
    logits = np.column_stack([gaps, np.zeros(10)]).astype(np.float32)
    labels = (gaps == 30).astype(np.int64)  # the most confident one is wrong
    by_torch = torch.softmax(torch.tensor(logits), 1).amax(1).numpy()
    prediction = Prediction(logits, None, {"abstain": -gaps.astype(np.float32)})
    confidences = {"SR": softmax_response(logits), "abstention": abstention(logits, -gaps)}
    np.testing.assert_array_equal(as_public_codes("SR", confidences["SR"], prediction), by_torch)
    outputs = torch.tensor(np.column_stack([logits, -gaps]).astype(np.float32))
    by_torch = -torch.softmax(outputs, 1)[:, -1].numpy()
    np.testing.assert_allclose(as_public_codes("abstention", confidences["abstention"], prediction), by_torch, 1e-6)
    measured = measure_scores(Evidence(prediction, labels), confidences)
    place = 20  # of 10 % among 201 coverages
    assert measured["SR"].percentile_coverage[place] == pytest.approx(0.3)
    assert measured["SR"].percentile_risk[place] == pytest.approx(1 / 3)
    assert measured["SR"].risk[place] == 1, "log-odds do not tie"
    assert measured["abstention"].percentile_coverage[place] == pytest.approx(0.1), "small numbers keep their digits"
