"""Scores of people's own logits and features: the same as in the suite to the bit, and strict."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors

import benchmark as sb
from benchmark.library import scores
from benchmark.measure import scores as measured

RANDOM = np.random.default_rng(1)
LOGITS = RANDOM.normal(size=(50, 4))
FEATURES, TRAIN, LABELS = RANDOM.normal(size=(20, 3)), RANDOM.normal(size=(60, 3)), RANDOM.integers(4, size=60)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("softmax_response", "margin", "negative_entropy", "max_logit", "energy", "doctor"), (LOGITS,)),
    "max_logit_pnorm": (LOGITS, 3),
    "abstention": (LOGITS, RANDOM.normal(size=50)),
    "nearest_neighbour": (FEATURES, TRAIN, 5),
    "mahalanobis": (FEATURES, TRAIN, LABELS),
}


def test_all_of_them_are_compared() -> None:
    assert set(scores.__all__) == set(ARGUMENTS)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_numbers_are_those_of_the_suite_to_the_bit(name: str) -> None:
    ours, theirs, arguments = getattr(sb.scores, name), getattr(measured, name), ARGUMENTS[name]
    assert ours(*arguments).tolist() == theirs(*arguments).tolist()
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("holder", ["lists", "pandas", "tensors", "tensors with gradient", "bfloat16"])
def test_whatever_holds_the_numbers(name: str, holder: str) -> None:
    rounded = [torch.tensor(a).bfloat16().double().numpy() if isinstance(a, np.ndarray) else a for a in ARGUMENTS[name]]
    hold: Callable[[Any], Any] = {
        "lists": np.ndarray.tolist,
        "pandas": lambda a: pd.DataFrame(a) if a.ndim == 2 else pd.Series(a, index=RANDOM.permutation(len(a))),
        "tensors": torch.tensor,
        "tensors with gradient": lambda a: torch.tensor(a, requires_grad=True) * 1,
        "bfloat16": lambda a: torch.tensor(a).bfloat16(),
    }[holder]
    held = [hold(a) if isinstance(a, np.ndarray) else a for a in rounded]
    expected = [a.astype(np.int64) if name == "mahalanobis" and a.ndim == 1 else a for a in map(np.asarray, rounded)]
    arguments = [a if a.ndim else int(a) for a in expected]
    assert getattr(sb.scores, name)(*held).tolist() == getattr(measured, name)(*arguments).tolist()


def test_against_definitions_and_another_library() -> None:
    p = torch.softmax(torch.tensor(LOGITS), 1)
    top = p.sort(1, descending=True).values.numpy()
    assert sb.scores.softmax_response(LOGITS) == pytest.approx(np.log(top[:, 0] / (1 - top[:, 0])))
    assert sb.scores.margin(LOGITS) == pytest.approx(-np.log(1 - top[:, 0] + top[:, 1]))
    assert sb.scores.negative_entropy(LOGITS) == pytest.approx(-torch.special.entr(p).sum(1).numpy())
    assert sb.scores.energy(LOGITS) == pytest.approx(torch.logsumexp(torch.tensor(LOGITS), 1).numpy())
    unit = [a / np.linalg.norm(a, axis=1, keepdims=True) for a in (FEATURES, TRAIN)]
    distances = NearestNeighbors(n_neighbors=5).fit(unit[1]).kneighbors(unit[0])[0][:, 4]
    assert sb.scores.nearest_neighbour(FEATURES, TRAIN, 5) == pytest.approx(-(distances**2))
    means = np.stack([TRAIN[c == LABELS].mean(axis=0) for c in range(4)])
    covariance = EmpiricalCovariance(assume_centered=True).fit(TRAIN - means[LABELS])
    nearest = np.min([covariance.mahalanobis(FEATURES - mean) for mean in means], axis=0)
    assert sb.scores.mahalanobis(FEATURES, TRAIN, LABELS) == pytest.approx(-nearest)


nan = float("nan")
PAIR = [[1.0, 2.0], [3.0, 4.0]]
BAD: dict[str, Callable[[], Any]] = {
    "logits: expected two dimensions, samples × classes, got the shape (2,)": lambda: sb.scores.margin([1.0, 2.0]),
    "expected at least one sample and 2 classes": lambda: sb.scores.softmax_response([[1.0], [2.0]]),
    "got nan at position (1, 0) (2 such values out of 4)": lambda: sb.scores.energy([[1, 2], [nan, nan]]),
    "logits and abstain: expected as many samples": lambda: sb.scores.abstention(PAIR, [1.0]),
    "abstain: expected one dimension": lambda: sb.scores.abstention(PAIR, [[1.0], [1.0]]),
    "p: expected a whole number, at least 0, got -1": lambda: sb.scores.max_logit_pnorm(PAIR, -1),
    "p: expected a whole number, at least 0, got 0.5": lambda: sb.scores.max_logit_pnorm(PAIR, 0.5),  # type: ignore[arg-type]
    "k: expected a whole number, at least 1, got 0": lambda: sb.scores.nearest_neighbour(PAIR, PAIR, 0),
    "expected as many features in both, got 2 and 1": lambda: sb.scores.nearest_neighbour(PAIR, [[1.0]]),
    "train: expected at least one sample": lambda: sb.scores.mahalanobis(PAIR, np.zeros((0, 2)), []),
    "train and labels: expected as many samples in both, got 2 and 1": lambda: sb.scores.mahalanobis(PAIR, PAIR, [0]),
    "labels: expected classes counted from 0, got -1": lambda: sb.scores.mahalanobis(PAIR, PAIR, [0, -1]),
}
"""By what is said of it: what must not give a number."""


@pytest.mark.parametrize("message", BAD)
def test_each_mistake_is_one_clear_error(message: str) -> None:
    with pytest.raises(ValueError) as caught:
        BAD[message]()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
