"""The AURC loss against printed values, the AURC itself, and the loop it is an expectation of."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Progress, Step, Task
from benchmark.measure.metrics import aurc
from methods._probabilities import confidence
from methods.aurc_loss import AURCLoss, ascending_rank, aurc_loss, weights
from tests.fixtures import F6_RESPONSE
from tests.methods.extremes import EXTREMES, Y, Z, assert_finite

F6_WEIGHTS = [0.95, 0.16666667, 1.45, 0.61666667, 2.45, 0.36666667]


def step(logits: Tensor, labels: Tensor) -> Step:
    method = AURCLoss(lambda images: (images, None), Task(3, 6, 3), AURCLoss.Config())
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


def alpha(logits: Tensor) -> Tensor:
    return weights(ascending_rank(logits), logits.dtype)


def test_f6() -> None:
    assert alpha(Z).tolist() == pytest.approx(F6_WEIGHTS, abs=1e-8)
    assert step(Z, Y).loss.item() == pytest.approx(0.38611269, abs=1e-8)


def test_is_the_mean_risk_over_all_coverages() -> None:
    """(1/n) Σ_k of the mean cross-entropy of the k most confident."""
    losses = cross_entropy(Z, Y, reduction="none").tolist()
    best_first = sorted(range(6), key=lambda i: -F6_RESPONSE[i])
    risks = [sum(losses[i] for i in best_first[:k]) / k for k in range(1, 7)]
    assert step(Z, Y).loss.item() == pytest.approx(sum(risks) / 6, rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 64])
def test_with_errors_in_place_of_the_loss_it_is_the_aurc_whatever_the_batch_size(size: int) -> None:
    logits = torch.randn(size, 5, generator=torch.Generator().manual_seed(size), dtype=torch.float64)
    labels = torch.arange(size) % 5
    error = (logits.argmax(1) != labels).double()
    expected = aurc(confidence(logits).numpy(), error.numpy())
    assert (alpha(logits) * error).mean().item() == pytest.approx(expected, abs=1e-12)
    assert alpha(logits).mean().item() == pytest.approx(1, abs=1e-12)


def test_the_weight_is_a_constant_of_the_gradient() -> None:
    logits = Z.clone().requires_grad_()
    step(logits, Y).loss.backward()
    slope = torch.softmax(Z, 1) - torch.nn.functional.one_hot(Y, 3)
    torch.testing.assert_close(logits.grad, alpha(Z)[:, None] * slope / 6)


def test_confidences_that_round_to_one_still_have_an_order() -> None:
    gaps = torch.tensor([40.0, 90.0, 20.0, 150.0])
    logits = torch.stack([gaps, torch.zeros(4), torch.zeros(4)], 1)
    assert len(set(confidence(logits).tolist())) == 1
    assert ascending_rank(logits).tolist() == [1, 2, 0, 3]


def test_equal_confidences_take_places_in_their_order() -> None:
    assert ascending_rank(torch.zeros(4, 3)).tolist() == [0, 1, 2, 3]
    uniform = torch.zeros(6, 3, dtype=torch.float64)
    assert aurc_loss(uniform, Y).mean().item() == pytest.approx(np.log(3)), "equal losses: their mean"


@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str) -> None:
    assert_finite(lambda z, y: step(z, y).loss, *EXTREMES[case])


def test_one_image_counts_as_in_plain_cross_entropy() -> None:
    assert step(Z[:1], Y[:1]).loss.item() == pytest.approx(cross_entropy(Z[:1], Y[:1]).item())
