"""SR's training: the mean negative log-likelihood and its textbook gradient; smoothed labels leave it as it is."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build, identity
from benchmark.interface import Batch, Progress, Step, Task
from methods.cross_entropy import CrossEntropy
from tests.methods.extremes import EXTREMES, Y, Z, assert_finite


def step(logits: Tensor, labels: Tensor, **settings: float) -> Step:
    method = CrossEntropy(lambda images: (images, None), Task(3, 6, 3), CrossEntropy.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


def by_loop(smoothing: float) -> float:
    """(1−a)·NLL + a · mean_j(−ln p_j)."""
    total = 0.0
    for row, label in zip(Z.tolist(), Y.tolist(), strict=True):
        minus_log_p = [math.log(sum(math.exp(u) for u in row)) - z for z in row]
        total += (1 - smoothing) * minus_log_p[label] + smoothing * sum(minus_log_p) / 3
    return total / 6


def test_value_and_gradient_of_f6() -> None:
    logits = Z.clone().requires_grad_()
    found = step(logits, Y)
    assert found.loss.item() == pytest.approx(0.70077762, abs=1e-8)
    found.loss.backward()
    expected = (torch.softmax(Z, 1) - torch.nn.functional.one_hot(Y, 3)) / 6
    torch.testing.assert_close(logits.grad, expected)
    assert found.logs["accuracy"].item() == 0.5


def test_smoothing_of_f6() -> None:
    assert step(Z, Y, smoothing=0.1).loss.item() == pytest.approx(0.78688873, abs=1e-8)


@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.5, 1.0])
def test_smoothing_equals_a_plain_loop(smoothing: float) -> None:
    assert step(Z, Y, smoothing=smoothing).loss.item() == pytest.approx(by_loop(smoothing), rel=1e-12)


@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str) -> None:
    for smoothing in (0.0, 0.05):
        assert_finite(lambda z, y, a=smoothing: step(z, y, smoothing=a).loss, *EXTREMES[case])


@pytest.mark.parametrize("case", EXTREMES)
def test_without_smoothing_every_bit_is_that_of_plain_cross_entropy(case: str) -> None:
    """Value and gradient: the results that other methods start from and are compared with stay what they are."""
    logits, labels = EXTREMES[case]
    ours, plain = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, expected = step(ours, labels).loss, cross_entropy(plain, labels)
    loss.backward()
    expected.backward()
    assert torch.equal(loss, expected)
    assert torch.equal(ours.grad, plain.grad)


def test_sr_is_first_and_keeps_its_identity() -> None:
    """Other methods start from the first label; a field in the identity would be another job."""
    assert next(iter(CrossEntropy.labels)) == "SR"
    assert CrossEntropy.labels["SR"] == {}
    assert identity(CrossEntropy.Config()) == {}
    assert identity(CrossEntropy.Config(**CrossEntropy.labels["Label smoothing"])) == {"smoothing": 0.05}


@pytest.mark.parametrize("smoothing", [-0.1, 1.5])
def test_a_smoothing_that_is_no_share_is_refused(smoothing: float) -> None:
    with pytest.raises(UserError, match="smoothing"):
        build(CrossEntropy.Config, {"smoothing": smoothing}, "here")
