"""LogitNorm against printed values and a plain loop; the loss sees directions, the prediction does not."""

import math

import pytest
import torch
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Step, Task
from methods.logit_norm import LogitNorm, direction
from tests.methods.extremes import EXTREMES, Y, Z, assert_finite


def make(**settings: object) -> LogitNorm:
    return LogitNorm(lambda images: (images, None), Task(3, 6, 3), LogitNorm.Config(**settings))


def step(logits: Tensor, labels: Tensor, **settings: object) -> Step:
    return make(**settings).training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


def by_loop(temperature: float, constant: float) -> list[float]:
    losses = []
    for row, label in zip(Z.tolist(), Y.tolist(), strict=True):
        norm = math.sqrt(sum(z * z for z in row)) + constant
        u = [z / norm / temperature for z in row]
        losses.append(max(u) + math.log(sum(math.exp(z - max(u)) for z in u)) - u[label])
    return losses


def test_f6() -> None:
    """The printed values are without the 1e-7, which is worth half a millionth where the norm is 0.22."""
    expected = [8e-8, 11.18035383, 1.576e-5, 11.18035383, 0, 8.79512079]
    assert by_loop(0.04, 0.0) == pytest.approx(expected, abs=5e-9)
    for i in range(6):
        assert step(Z[i : i + 1], Y[i : i + 1]).loss.item() == pytest.approx(expected[i], rel=5e-7, abs=5e-9)


@pytest.mark.parametrize("temperature", [0.01, 0.04, 1.0])
def test_equals_a_plain_loop(temperature: float) -> None:
    assert step(Z, Y, temperature=temperature).loss.item() == pytest.approx(
        sum(by_loop(temperature, 1e-7)) / 6, rel=1e-12
    )


def test_the_length_of_the_logits_changes_nothing_but_the_log() -> None:
    short, long = step(Z, Y), step(1000 * Z, Y)
    assert long.loss.item() == pytest.approx(short.loss.item(), rel=1e-6)
    assert long.logs["logit_norm"].item() == pytest.approx(1000 * short.logs["logit_norm"].item())
    logits = Z.clone().requires_grad_()
    step(logits, Y).loss.backward()
    assert (logits.grad * Z).sum(1).abs().max() < 1e-5, "no gradient along the logits, up to the 1e-7"


def test_predictions_are_the_raw_logits() -> None:
    assert torch.equal(make().predict(Z).logits, Z)


@pytest.mark.parametrize("num_classes", [2, 3, 100])
def test_the_loss_has_a_floor(num_classes: int) -> None:
    """Logits cannot be further from right than a unit vector allows."""
    perfect = torch.full((1, num_classes), -1.0, dtype=torch.float64)
    perfect[0, 0] = num_classes - 1
    floor = math.log1p((num_classes - 1) * math.exp(-math.sqrt(num_classes / (num_classes - 1)) / 0.3))
    label = torch.zeros(1, dtype=torch.long)
    assert step(perfect, label, temperature=0.3).loss.item() == pytest.approx(floor, rel=1e-6)
    tries = perfect + torch.randn(500, num_classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    losses = [step(row[None], label, temperature=0.3).loss.item() for row in tries]
    assert min(losses) > floor * (1 - 1e-6)


def test_gradient_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(lambda z: step(z, Y, temperature=0.5).loss, Z.clone().requires_grad_())


@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str) -> None:
    """Logits that are all 0 have no direction."""
    assert_finite(lambda z, y: step(z, y).loss, *EXTREMES[case])
    assert (direction(torch.zeros(2, 3)) == 0).all()


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="temperature"):
        build(LogitNorm.Config, {"temperature": 0.0}, "here")
