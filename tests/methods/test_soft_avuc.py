"""Soft AvUC against printed values and a plain loop, and the entropies at which its plain form is NaN."""

import math

import pytest
import torch
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Step, Task
from methods._probabilities import correctness
from methods.soft_avuc import SoftAvUC, mixed_entropy, soft_avuc, soft_counts, uncertain
from tests.fixtures import F6_LABELS, F6_LOGITS
from tests.methods.extremes import EXTREMES, assert_finite

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
LOGITS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
LABELS = torch.arange(12) % 4


def step(logits: Tensor, labels: Tensor, **settings: object) -> Step:
    method = SoftAvUC(lambda images: (images, None), Task(logits.shape[1], 6, 3), SoftAvUC.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


def price(logits: Tensor, labels: Tensor, threshold: float, temperature: float) -> Tensor:
    entropy = mixed_entropy(logits)
    t = uncertain(entropy / math.log(logits.shape[1]), threshold, temperature)
    return soft_avuc(*soft_counts(t, entropy, correctness(logits, labels)))


def test_entropy_of_f6() -> None:
    expected = [0.62159580, 1.09528734, 0.57718870, 0.83240133, 0.43715121, 0.95281074]
    assert mixed_entropy(Z).tolist() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("threshold", "temperature", "counts", "expected"),
    [
        (0.5, 1.0, [0.77640261, 0.74963304, 0.11208865, 1.95564823], 0.27414994),
        (0.7, 0.1, [1.51426634, 0.00192671, 0.01618198, 2.18694285], 0.00488071),
        (0.2, 0.1, [3.551e-5, 1.48411268, 0, 2.22161602], 0.51163865),
    ],
)
def test_f6(threshold: float, temperature: float, counts: list[float], expected: float) -> None:
    entropy = mixed_entropy(Z)
    found = soft_counts(uncertain(entropy / math.log(3), threshold, temperature), entropy, correctness(Z, Y))
    assert [count.item() for count in found] == pytest.approx(counts, abs=1e-8)
    result = step(Z, Y, threshold=threshold, temperature=temperature, weight=2.0)
    assert result.logs["soft_avuc"].item() == pytest.approx(expected, abs=1e-8)
    assert result.loss.item() == pytest.approx(0.70077762 + 2 * expected, abs=3e-8)


def test_f6_with_the_entropy_divided_by_the_classes() -> None:
    """That code mixes nothing into p and sums in float32: 1e-7 without the mixture, whose own part is 2.4e-5."""
    log_p = torch.log_softmax(Z, 1)
    entropy = -(log_p.exp() * log_p).sum(1)
    plain = soft_avuc(*soft_counts(uncertain(entropy / 3, 0.2, 0.1), entropy, correctness(Z, Y)))
    assert plain.item() == pytest.approx(0.15564750, abs=1e-7)
    logged = step(Z, Y, threshold=0.2, normaliser="classes").logs["soft_avuc"]
    assert logged.item() == pytest.approx(0.15564750, abs=2.4e-5)


def test_equals_a_plain_loop() -> None:
    threshold, temperature = 0.3, 0.5
    agree, disagree, memberships = 0.0, 0.0, []
    for z, y in zip(LOGITS.tolist(), LABELS.tolist(), strict=True):
        powers = [math.exp(z_j) for z_j in z]
        p = [(1 - 1e-5) * power / sum(powers) + 1e-5 / 4 for power in powers]
        entropy = -sum(p_j * math.log(p_j) for p_j in p)
        e = entropy / math.log(4)
        odds = e * (1 - threshold) / ((1 - e) * threshold)
        t = odds ** (1 / temperature) / (1 + odds ** (1 / temperature))
        certain, doubtful = (1 - t) * (1 - math.tanh(entropy)), t * math.tanh(entropy)
        right = z.index(max(z)) == y
        agree += certain if right else doubtful
        disagree += doubtful if right else certain
        memberships.append(t)
    assert price(LOGITS, LABELS, threshold, temperature).item() == pytest.approx(math.log(1 + disagree / agree))
    logs = step(LOGITS, LABELS, threshold=threshold, temperature=temperature).logs
    assert logs["uncertain_share"].item() == pytest.approx(sum(memberships) / 12)


def test_gradient_by_finite_differences() -> None:
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: price(z, LABELS, 0.3, 0.5), logits)


@pytest.mark.parametrize("normaliser", ["log_classes", "classes"])
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, normaliser: str) -> None:
    assert_finite(lambda z, y: step(z, y, normaliser=normaliser).loss, *EXTREMES[case])


def test_finite_where_rounding_takes_the_entropy_beyond_its_maximum() -> None:
    """As at the first steps of a network whose last layer starts near 0."""
    logits = (torch.randn(256, 10, generator=torch.Generator().manual_seed(0)) * 1e-4).requires_grad_()
    assert (mixed_entropy(logits) / math.log(10) > 1).any()
    loss = step(logits, torch.arange(256) % 10).loss
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(
    "settings", [{"threshold": 0.0}, {"threshold": 1.0}, {"temperature": 0.0}, {"weight": -1.0}], ids=str
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(settings))):
        build(SoftAvUC.Config, settings, "here")
