"""Scores against oracle values, and where the plain probability would saturate."""

import numpy as np
import pytest
from scipy.special import softmax

from benchmark.scores import abstention, softmax_response
from tests.fixtures import F6_LOGITS, F6_RESPONSE


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
