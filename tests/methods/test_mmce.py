"""MMCE as one quadratic form against the double sums it is published as, with every normaliser."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Step, Task
from methods._probabilities import confidence, correctness
from methods.mmce import MMCE, NORMALISERS, laplacian_kernel, mmce
from tests.fixtures import F6_LABELS, F6_LOGITS
from tests.methods.extremes import EXTREMES, assert_finite

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
FIVE_RIGHT = torch.tensor([0, 1, 2, 1, 1, 0])
ALL_RIGHT, ALL_WRONG = Z.argmax(1), (Z.argmax(1) + 1) % 3
every_normaliser = pytest.mark.parametrize("normaliser", NORMALISERS)


def value(logits: Tensor, labels: Tensor, normaliser: str) -> Tensor:
    r = confidence(logits)
    return mmce(NORMALISERS[normaliser](r, correctness(logits, labels)), laplacian_kernel(r))


def step(logits: Tensor, labels: Tensor, **settings: object) -> Step:
    method = MMCE(lambda images: (images, None), Task(3, 6, 3), MMCE.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


def by_sums(labels: Tensor, normaliser: str, constant: float = 0.0) -> float:
    """Means over the pairs of right, of wrong and of mixed samples; `twice` divides each by its count of pairs again.

    The constant is what public code adds to that count.
    """
    pairs: dict[tuple[bool, bool], list[float]] = {}
    r, predicted = (column.tolist() for column in torch.softmax(Z, 1).max(1))
    right = [guess == label for guess, label in zip(predicted, labels.tolist(), strict=True)]
    error = [1 - r_i if ok else -r_i for r_i, ok in zip(r, right, strict=True)]
    for i in range(6):
        for j in range(6):
            kernel = math.exp(-abs(r[i] - r[j]) / 0.4)
            pairs.setdefault((right[i], right[j]), []).append(error[i] * error[j] * kernel)
    if normaliser == "unweighted":
        return math.sqrt(sum(map(sum, pairs.values())) / 36)
    again = {"once": lambda count: 1, "twice": lambda count: count + constant}[normaliser]
    return math.sqrt(sum(sum(terms) / len(terms) / again(len(terms)) for terms in pairs.values()))


@pytest.mark.parametrize(
    ("labels", "normaliser", "expected", "tolerance"),
    [
        (Y, "unweighted", 0.18568552, 1e-8),
        (Y, "once", 0.37137105, 1e-8),
        (FIVE_RIGHT, "once", 0.30856705, 1e-8),
        # Public code adds 1e-5 to each count of pairs, which matters most where there is one wrong sample.
        (Y, "twice", 0.12379028, 8e-8),
        (FIVE_RIGHT, "twice", 0.34430465, 2e-6),
    ],
)
def test_f6(labels: Tensor, normaliser: str, expected: float, tolerance: float) -> None:
    assert value(Z, labels, normaliser).item() == pytest.approx(expected, abs=tolerance)
    assert by_sums(labels, normaliser, constant=1e-5) == pytest.approx(expected, abs=1e-8)


@every_normaliser
@pytest.mark.parametrize("labels", [Y, FIVE_RIGHT], ids=["three right", "five right"])
def test_equals_the_double_sums(labels: Tensor, normaliser: str) -> None:
    """The 1e-10 below the root is worth up to 1e-10 / 2·MMCE."""
    assert value(Z, labels, normaliser).item() == pytest.approx(by_sums(labels, normaliser), abs=1e-9)


@every_normaliser
def test_gradient_by_finite_differences(normaliser: str) -> None:
    assert torch.autograd.gradcheck(lambda z: value(z, FIVE_RIGHT, normaliser), Z.clone().requires_grad_())


@pytest.mark.parametrize("normaliser", ["once", "twice"])
@pytest.mark.parametrize("labels", [ALL_RIGHT, ALL_WRONG], ids=["all right", "all wrong"])
def test_nothing_to_compare_is_exactly_0_without_gradient(labels: Tensor, normaliser: str) -> None:
    logits = Z.clone().requires_grad_()
    error = value(logits, labels, normaliser)
    error.backward()
    assert error == 0
    assert (logits.grad == 0).all()
    assert value(Z, labels, "unweighted") > 0.1


@every_normaliser
def test_a_calibrated_batch_costs_the_root_of_the_constant_and_has_a_finite_gradient(normaliser: str) -> None:
    """Two classes at r = ½, half of them right: aᵀKa is 0 although no weight is."""
    logits = torch.zeros(4, 2, requires_grad=True)
    error = value(logits, torch.tensor([0, 0, 1, 1]), normaliser)
    error.backward()
    assert error.item() == pytest.approx(1e-5)
    assert torch.isfinite(logits.grad).all()


def test_unweighted_square() -> None:
    assert value(Z, Y, "unweighted").item() ** 2 == pytest.approx(0.03447911, abs=1e-8)


def test_total() -> None:
    result = step(Z, Y)
    assert result.loss.item() == pytest.approx(0.70077762 + 2 * value(Z, Y, "twice").item(), abs=1e-8)
    assert step(Z, Y, weight=0.0).loss.item() == pytest.approx(cross_entropy(Z, Y).item(), abs=1e-12)
    kernel = [math.exp(-abs(a - b) / 0.4) for a in confidence(Z).tolist() for b in confidence(Z).tolist()]
    assert result.logs["kernel_mean"].item() == pytest.approx(sum(kernel) / 36)
    assert step(Z, Y, normaliser="once").logs["mmce"].item() == pytest.approx(0.37137105, abs=1e-8)


@every_normaliser
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, normaliser: str) -> None:
    assert_finite(lambda z, y: step(z, y, normaliser=normaliser).loss, *EXTREMES[case])


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(UserError, match="weight"):
        build(MMCE.Config, {"weight": -1.0}, "here")
