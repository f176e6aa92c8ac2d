"""Metrics on people's own numbers: right, the same as in the suite to the bit, and strict about what they are given."""

import doctest
import inspect
import math
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import benchmark as sb
from benchmark.library import compare, costs, metrics, scores
from benchmark.measure import metrics as measured
from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import Evidence, Prediction

RANDOM = np.random.default_rng(0)
CONFIDENCE = RANDOM.normal(size=200).round(1)  # many ties
ERROR = RANDOM.integers(2, size=200)
LOSS = RANDOM.random(200)
LOGITS = RANDOM.normal(size=(200, 5))
LABELS = RANDOM.integers(5, size=200)
PROBABILITY = RANDOM.random(200)

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "aurc": (CONFIDENCE, LOSS),
    "e_aurc": (CONFIDENCE, ERROR),
    "optimal_aurc": (13, 200),
    "augrc": (CONFIDENCE, LOSS),
    "failure_auroc": (CONFIDENCE, ERROR),
    "failure_aupr": (CONFIDENCE, ERROR),
    "fpr_at_tpr": (CONFIDENCE, ERROR, 0.8),
    "naurc": (CONFIDENCE, LOSS),
    "coverage_at_risk": (CONFIDENCE, LOSS, 0.45),
    "selective_risk": (CONFIDENCE, LOSS, [0.1, 0.5, 1.0]),
    "percentile_risk": (CONFIDENCE, LOSS, [0.1, 0.5, 1.0]),
    "class_coverage": (CONFIDENCE, LABELS, 6, 0.3),
    "top_ties": (CONFIDENCE,),
    "nll": (LOGITS, LABELS),
    "brier": (LOGITS, LABELS),
    "ece": (PROBABILITY, ERROR, 10),
}
"""Of functions that the suite has under the same name, with the same arguments."""
FURTHER: dict[str, tuple[Any, ...]] = {
    "accuracy": (LOGITS, LABELS),
    "classifier_metrics": (LOGITS, LABELS),
    "ranking_metrics": (CONFIDENCE, ERROR),
    "risk_curve": (CONFIDENCE, LOSS),
}


@pytest.mark.parametrize("module", [metrics, costs, scores, compare], ids=lambda module: module.__name__)
def test_every_public_function_has_an_example_that_holds(module: ModuleType) -> None:
    examples = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert doctest.testmod(module).failed == 0
    public = getattr(module, "__all__", ["compare"])
    assert {test.name.rpartition(".")[2] for test in examples} == set(public)


def test_all_of_them_are_compared() -> None:
    assert set(metrics.__all__) == {*ARGUMENTS, *FURTHER}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_numbers_are_those_of_the_suite_to_the_bit(name: str) -> None:
    ours, theirs = getattr(sb.metrics, name), getattr(measured, name)
    np.testing.assert_equal(ours(*ARGUMENTS[name]), theirs(*ARGUMENTS[name]))
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_those_with_other_arguments_too() -> None:
    found = measure(Evidence(Prediction(LOGITS), LABELS), {"own": CONFIDENCE})
    numbers = {name: value for name, value in vars(found.classifier).items() if isinstance(value, float)}
    assert sb.metrics.classifier_metrics(LOGITS, LABELS) == numbers
    assert sb.metrics.accuracy(LOGITS, LABELS) == found.classifier.accuracy
    error = LOGITS.argmax(axis=1) != LABELS
    ranking = sb.metrics.ranking_metrics(CONFIDENCE, error)
    assert ranking == {name: vars(found.scores["own"])[name] for name in ranking}
    coverage, risk = sb.metrics.risk_curve(CONFIDENCE, LOSS)
    assert risk.tolist() == measured.risk_curve(measured.ranked_loss(CONFIDENCE, LOSS)).tolist()
    assert coverage.tolist() == [k / 200 for k in range(1, 201)]


def test_costs_too() -> None:
    ratios = measured.COST_RATIOS
    ranked, errors = measured.ranked_loss(CONFIDENCE, LOSS), LOGITS.argmax(axis=1) != LABELS
    assert sb.costs.best_cost(CONFIDENCE, LOSS, ratios).tolist() == measured.cost_curve(ranked)  # type: ignore[union-attr]
    found = measure(Evidence(Prediction(LOGITS), LABELS), {}).classifier.chow_cost
    largest = np.exp(LOGITS).max(axis=1) / np.exp(LOGITS).sum(axis=1)
    assert sb.costs.chow_cost(largest, errors, ratios) == pytest.approx(found)
    assert isinstance(sb.costs.best_cost(CONFIDENCE, LOSS, 0.1), float)
    assert isinstance(sb.costs.chow_cost(largest, errors, 0.1), float)
    coverage, found_costs = sb.costs.threshold_costs(CONFIDENCE, LOSS, 0.4)
    assert coverage.tolist() == [k / 200 for k in range(201)]
    assert (found_costs.min(), found_costs[0], found_costs[-1]) == pytest.approx(
        (measured.cost_curve(ranked)[80], 0.4, LOSS.mean())
    )


def test_against_another_library() -> None:
    probabilities = torch.softmax(torch.tensor(LOGITS), 1)
    assert sb.metrics.failure_auroc(CONFIDENCE, ERROR) == pytest.approx(roc_auc_score(1 - ERROR, CONFIDENCE))
    assert sb.metrics.nll(LOGITS, LABELS) == pytest.approx(log_loss(LABELS, probabilities))
    assert sb.metrics.accuracy(LOGITS, LABELS) == pytest.approx(accuracy_score(LABELS, LOGITS.argmax(axis=1)))
    distance = ((probabilities - torch.nn.functional.one_hot(torch.tensor(LABELS), 5)) ** 2).sum(1).mean()
    assert sb.metrics.brier(LOGITS, LABELS) == pytest.approx(distance.item())


runs = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12)


@given(runs)
def test_areas_against_loops(run: list[tuple[int, bool]]) -> None:
    confidence, error = zip(*run, strict=True)
    mean = {c: sum(e for d, e in run if d == c) / confidence.count(c) for c in confidence}
    ranked = [mean[c] for c in sorted(confidence, reverse=True)]
    risks = [sum(ranked[:k]) / k for k in range(1, len(run) + 1)]
    assert sb.metrics.aurc(confidence, error) == pytest.approx(sum(risks) / len(run))
    best = [sum(sorted(error)[:k]) / k for k in range(1, len(run) + 1)]
    assert sb.metrics.e_aurc(confidence, error) == pytest.approx((sum(risks) - sum(best)) / len(run))
    assert sb.metrics.optimal_aurc(sum(error), len(run)) == pytest.approx(sum(best) / len(run))
    kept = [0.0, *(sum(ranked[:k]) / len(run) for k in range(1, len(run) + 1))]
    trapezoids = sum((a + b) / 2 for a, b in pairwise(kept)) / len(run)
    assert sb.metrics.augrc(confidence, error) == pytest.approx(trapezoids)
    for k, risk in enumerate(risks, start=1):
        assert sb.metrics.selective_risk(confidence, error, k / len(run)) == pytest.approx(risk)
    assert sb.metrics.risk_curve(confidence, error)[1].tolist() == pytest.approx(risks)


def test_shares_of_classes_against_a_loop() -> None:
    order = RANDOM.permutation(200)  # no ties
    kept = order >= 140
    expected = [kept[c == LABELS].mean() for c in range(5)]
    found = sb.metrics.class_coverage(order, LABELS, 6, 0.3)
    assert found[:5].tolist() == pytest.approx(expected)
    assert math.isnan(found[5])


def test_calibration_against_a_loop() -> None:
    expected = 0.0
    for low in np.arange(10) / 10:
        inside = (low < PROBABILITY) & (low + 0.1 >= PROBABILITY)
        expected += abs((1 - ERROR[inside]).sum() - PROBABILITY[inside].sum()) / 200
    assert sb.metrics.ece(PROBABILITY, ERROR, bins=10) == pytest.approx(expected)


class OnGpu:
    """A tensor in the memory of a GPU: numpy cannot read it before it is brought to the host."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def detach(self) -> "OnGpu":
        return self

    def cpu(self) -> torch.Tensor:
        return self.tensor

    def __array__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


VALUES = [0.75, 0.5, 0.25, 0.25]
"""The same in every precision."""
HOLDERS: dict[str, Callable[[list[float]], Any]] = {
    "list": list,
    "tuple": tuple,
    "float64": np.array,
    "float32": lambda values: np.array(values, np.float32),
    "float16": lambda values: np.array(values, np.float16),
    "masked": np.ma.masked_array,
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "pandas": lambda values: pd.Series(values, index=[7, 3, 3, 1]),
    "pandas, nullable": lambda values: pd.Series(values, dtype="Float64"),
    "pandas, objects": lambda values: pd.Series(values, dtype=object),
    "tensor": torch.tensor,
    "tensor with gradient": lambda values: torch.tensor(values, requires_grad=True) * 1,
    "tensor, bfloat16": lambda values: torch.tensor(values, dtype=torch.bfloat16),
    "tensor, float16": lambda values: torch.tensor(values, dtype=torch.float16),
    "tensor on a GPU": lambda values: OnGpu(torch.tensor(values)),
    "list with a tensor": lambda values: [*values[:-1], torch.tensor(values[-1], requires_grad=True)],
    "list of tensors": lambda values: list(torch.tensor(values, requires_grad=True)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_numbers(holder: str) -> None:
    held, expected = HOLDERS[holder](VALUES), measured.aurc(VALUES, [0, 1, 1, 0])
    assert sb.metrics.aurc(held, [0, 1, 1, 0]) == expected
    assert sb.metrics.selective_risk([4, 3, 2, 1], held, 0.5) == 0.625
    assert sb.metrics.selective_risk(VALUES, [0, 1, 1, 0], held).tolist() == pytest.approx([1 / 2, 1 / 2, 0, 0])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "error",
    [
        [False, True, True, False],
        np.array([False, True, True, False]),
        np.array([0, 1, 1, 0], np.uint8),
        pd.Series([False, True, True, False], dtype="boolean"),
        torch.tensor([False, True, True, False]),
        torch.tensor([0, 1, 1, 0]),
        [0.0, 1.0, 1.0, 0.0],
    ],
    ids=str,
)
def test_errors_may_be_truth_values_or_numbers(error: Any) -> None:
    assert sb.metrics.e_aurc(VALUES, error) == measured.e_aurc(VALUES, [0, 1, 1, 0])


def test_small_whole_numbers_do_not_wrap_around() -> None:
    assert sb.metrics.aurc(np.array([2, 1, 0], np.uint8), [0, 0, 1]) == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    "labels", [[0, 2], (0.0, 2.0), np.array([0, 2], np.uint8), pd.Series([0, 2]), torch.tensor([0, 2])], ids=str
)
def test_labels_and_logits_in_any_form(labels: Any) -> None:
    logits = [[2.0, 0.5, 0.25], [0.5, 0.25, 0.125]]
    for table in (logits, pd.DataFrame(logits), torch.tensor(logits), torch.tensor(logits).bfloat16()):
        assert sb.metrics.nll(table, labels) == measured.nll(logits, [0, 2])


nan, inf = float("nan"), float("inf")
MATRIX = [[1.0, 0.0], [0.0, 1.0]]
REAL = "expected numbers that are neither NaN nor infinite"
BAD: dict[str, Callable[[], Any]] = {
    "and loss: expected as many samples in both, got 2 and 3": lambda: sb.metrics.aurc([0.9, 0.8], [0, 1, 1]),
    "confidence and error: expected as many samples in both, got 3 and 2": lambda: sb.metrics.e_aurc([1, 2, 3], [0, 1]),
    "logits and labels: expected as many samples in both, got 2 and 1": lambda: sb.metrics.nll(MATRIX, [0]),
    "confidence: expected at least one value, got none": lambda: sb.metrics.aurc([], []),
    "expected at least one sample and 2 classes, got the shape (0, 3)": lambda: sb.metrics.nll(np.zeros((0, 3)), []),
    "expected at least one sample and 2 classes, got the shape (1, 1)": lambda: sb.metrics.brier([[1.0]], [0]),
    f"confidence: {REAL}, got nan at position 1": lambda: sb.metrics.aurc([0.9, nan], [0, 1]),
    "got nan at position 1 (2 such values out of 3)": lambda: sb.metrics.top_ties([0.9, nan, nan]),
    f"confidence: {REAL}, got inf at position 2": lambda: sb.metrics.aurc([0.9, 0.8, inf], [0, 1, 1]),
    f"logits: {REAL}, got nan at position (1, 0)": lambda: sb.metrics.nll([[1, 2], [nan, 0]], [0, 1]),
    f"loss: {REAL}, got nan at position 0": lambda: sb.metrics.augrc([1, 2], [nan, 0]),
    f"error: {REAL}, got nan at position 1": lambda: sb.metrics.e_aurc([1, 2], [0, None]),
    f"{REAL}, got nan at position 0": lambda: sb.metrics.top_ties(pd.Series([None, 1], dtype="Int64")),
    f"{REAL}, got nan at position 2": lambda: sb.metrics.top_ties(np.ma.masked_array([1, 2, 3], [False, False, True])),
    "confidence: expected numbers, got '0.9'": lambda: sb.metrics.aurc(["0.9", "0.8"], [0, 1]),
    "confidence: expected numbers, got 'x' at position 1": lambda: sb.metrics.aurc(pd.Series([1, "x"]), [0, 1]),
    "confidence: expected numbers, got 1j": lambda: sb.metrics.aurc(torch.tensor([1j, 2j]), [0, 1]),
    "expected a list or an array of numbers, got {1, 2}": lambda: sb.metrics.top_ties({1, 2}),
    "confidence: expected a list or an array, a number per sample, got 0.9": lambda: sb.metrics.aurc(0.9, [0]),
    "got the shape (3, 1); flatten it, e.g. with .ravel()": lambda: sb.metrics.aurc(torch.ones(3, 1), [0, 1, 1]),
    "expected one dimension, a number per sample, got the shape (2, 2)": lambda: sb.metrics.aurc(MATRIX, [0, 1]),
    "expected two dimensions, samples × classes, got the shape (2,)": lambda: sb.metrics.nll([1.0, 2.0], [0, 1]),
    "logits: expected rows of one length, got rows of several": lambda: sb.metrics.nll([[1, 2], [1]], [0, 1]),
    "loss: expected values from 0 to 1, got 37 at position 1": lambda: sb.metrics.aurc([1, 2], [0, 37]),
    "loss: expected values from 0 to 1, got -1 at position 0": lambda: sb.metrics.augrc([1, 2], [-1, 0]),
    "error: expected 0 (right) or 1 (wrong), got 0.5 at position 1": lambda: sb.metrics.e_aurc([1, 2], [0, 0.5]),
    "error: expected 0 (right) or 1 (wrong), got 2 at position 0": lambda: sb.metrics.failure_auroc([1, 2], [2, 0]),
    "labels: expected classes as whole numbers, got 0.5 at position 1": lambda: sb.metrics.nll(MATRIX, [0, 0.5]),
    "from 0 to 1, got 2 at position 1; count classes from 0": lambda: sb.metrics.nll(MATRIX, [1, 2]),
    "labels: expected values from 0 to 1, got -1 at position 1": lambda: sb.metrics.brier(MATRIX, [0, -1]),
    "expected values from 0 to 2, got 3 at position 1": lambda: sb.metrics.class_coverage([1, 2], [0, 3], 3, 0.5),
    "got 90; this looks like per cent: divide by 100": lambda: sb.metrics.selective_risk([1, 2], [0, 1], 90),
    "coverage: expected shares above 0 and up to 1, got 0": lambda: sb.metrics.selective_risk([1, 2], [0, 1], 0),
    "expected shares above 0 and up to 1, got -0.5": lambda: sb.metrics.percentile_risk([1, 2], [0, 1], -0.5),
    f"coverage: {REAL}, got nan": lambda: sb.metrics.selective_risk([1, 2], [0, 1], nan),
    "expected one number, got 2 numbers": lambda: sb.metrics.class_coverage([1, 2], [0, 1], 2, [0.5, 1]),  # type: ignore[arg-type]
    "expected a number or a list of numbers": lambda: sb.metrics.selective_risk([1, 2], [0, 1], [[0.5]]),
    "probability: expected values from 0 to 1, got 1.5 at position 1": lambda: sb.metrics.ece([0.5, 1.5], [0, 1]),
    "loss: expected values from 0 to 1, got 1.0000001 at position 0": lambda: sb.metrics.aurc([1], [1.0000001]),
    "bins: expected a whole number, at least 1, got 0": lambda: sb.metrics.ece([0.5], [0], bins=0),
    "bins: expected a whole number, at least 1, got 1.5": lambda: sb.metrics.ece([0.5], [0], bins=1.5),  # type: ignore[arg-type]
    "num_classes: expected a whole number, at least 1, got '2'": lambda: sb.metrics.class_coverage([1], [0], "2", 0.5),  # type: ignore[arg-type]
    "risk: expected values from 0 to 1, got 5; this looks like per cent": lambda: sb.metrics.coverage_at_risk(
        [1, 2], [0, 1], 5
    ),
    "ratio: expected values from 0 to 1, got -0.1": lambda: sb.costs.best_cost([1, 2], [0, 1], -0.1),
    "ratio: expected one number, got 2 numbers": lambda: sb.costs.threshold_costs([1], [0], [0.1, 0.2]),  # type: ignore[arg-type]
    "tpr: expected values from 0 to 1, got 95; this looks like per cent": lambda: sb.metrics.fpr_at_tpr(
        [1, 2], [0, 1], 95
    ),
    "probability: expected values from 0 to 1, got 3": lambda: sb.costs.chow_cost([0.5, 3], [0, 1], 0.1),
    "num_errors: expected at most n = 2, got 3": lambda: sb.metrics.optimal_aurc(3, 2),
}
"""By what is said of it: what must not give a number."""


@pytest.mark.parametrize("message", BAD)
def test_each_mistake_is_one_clear_error(message: str) -> None:
    with pytest.raises(ValueError) as caught:
        BAD[message]()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_unusual_but_right() -> None:
    probabilities = [[0.9, 0.1], [0.2, 0.8]]
    assert sb.metrics.accuracy(probabilities, [0, 1]) == 1.0, "logits that look like probabilities"
    assert math.isnan(sb.metrics.failure_auroc([1, 2], [0, 0])), "no error: there is nothing to rank"
    assert sb.metrics.aurc([-5], [True]) == 1.0, "one sample"
    assert sb.metrics.optimal_aurc(np.int64(0), 3) == 0.0  # type: ignore[arg-type]
