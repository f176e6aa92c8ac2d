"""Soft ECE in both forms against printed values and plain loops, and the form that does not train."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Step, Task
from methods.soft_ece import FORMS, SoftECE, binned, label_binned
from tests.fixtures import F6_LABELS, F6_LOGITS
from tests.methods.extremes import EXTREMES, assert_finite

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
LOGITS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
LABELS = torch.arange(12) % 4


def step(logits: Tensor, labels: Tensor, **settings: object) -> Step:
    method = SoftECE(lambda images: (images, None), Task(3, 6, 3), SoftECE.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1))


@pytest.mark.parametrize(
    ("bins", "temperature", "norm", "expected"),
    [
        (15, 0.01, 2.0, 0.33851440),
        (15, 1e-4, 2.0, 0.40340133),
        (15, 1.0, 2.0, 0.17598589),
        (15, 0.01, 1.0, 0.28841484),
        (10, 0.01, 2.0, 0.33936744),
    ],
)
def test_f6_binned(bins: int, temperature: float, norm: float, expected: float) -> None:
    assert binned(Z, Y, bins, temperature, norm).item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("temperature", "expected"), [(0.01, 0.11817107), (1e-4, 0.16274336)])
def test_f6_label_binned(temperature: float, expected: float) -> None:
    assert label_binned(Z, Y, 15, temperature, 2.0).item() == pytest.approx(expected, abs=1e-8)


def by_loops(form: str, bins: int, temperature: float, norm: float) -> float:
    (r, guess), labels = (column.tolist() for column in torch.softmax(LOGITS, 1).max(1)), LABELS.tolist()
    right = [float(g == y) for g, y in zip(guess, labels, strict=True)]
    lowest = 0.0 if form == "binned" else 1 / 4
    middles = [lowest + (1 - lowest) * (b + 0.5) / bins for b in range(bins)]
    u = []
    for r_i in r:
        powers = [math.exp(-((r_i - middle) ** 2) / temperature) for middle in middles]
        u.append([power / sum(powers) for power in powers])
    if form == "label_binned":
        u = [[(1 - 1e-5) * part + 1e-5 / bins for part in row] for row in u]
    total = 0.0
    for b in range(bins):
        mass = sum(row[b] for row in u)
        hits = sum(row[b] * c for row, c in zip(u, right, strict=True)) / mass
        if form == "binned":
            mean = sum(row[b] * r_i for row, r_i in zip(u, r, strict=True)) / mass
            total += mass / 12 * abs(mean - hits) ** norm
        else:
            total += sum(row[b] * abs(hits - r_i) ** norm for row, r_i in zip(u, r, strict=True)) / 12
    return total ** (1 / norm) if form == "binned" else total


@pytest.mark.parametrize("form", ["binned", "label_binned"])
@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_equals_plain_loops(form: str, norm: float) -> None:
    """The 1e-10 below the root and the floor of 1e-5 of a bin's mass are worth less than 1e-8 here."""
    value = FORMS[form](LOGITS, LABELS, 7, 0.02, norm).item()
    assert value == pytest.approx(by_loops(form, 7, 0.02, norm), abs=1e-8)


@pytest.mark.parametrize("form", ["binned", "label_binned"])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_gradient_by_finite_differences(form: str, norm: float) -> None:
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: FORMS[form](z, LABELS, 15, 0.01, norm), logits)


def test_total() -> None:
    assert step(Z, Y).loss.item() == pytest.approx(0.70077762 + 0.33851440, abs=2e-8)
    half = step(Z, Y, weight=0.5, form="label_binned")
    assert half.loss.item() == pytest.approx(0.70077762 + 0.5 * 0.11817107, abs=2e-8)
    assert half.logs["soft_ece"].item() == pytest.approx(0.11817107, abs=1e-8)


def test_no_gradient_has_the_value_but_trains_the_cross_entropy_alone() -> None:
    logits = Z.clone().requires_grad_()
    loss = step(logits, Y, form="no_gradient").loss
    assert loss == step(Z, Y).loss
    (gradient,) = torch.autograd.grad(loss, logits)
    (plain,) = torch.autograd.grad(cross_entropy(logits, Y), logits)
    (trained,) = torch.autograd.grad(step(logits, Y).loss, logits)
    assert torch.equal(gradient, plain)
    assert not torch.allclose(trained, plain, atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, form: str) -> None:
    """All right by 200 is perfectly calibrated: the root's plain gradient is infinite there."""
    assert_finite(lambda z, y: step(z, y, form=form).loss, *EXTREMES[case])


@pytest.mark.parametrize("settings", [{"bins": 0}, {"temperature": 0.0}, {"norm": 0.5}, {"weight": -1.0}], ids=str)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(settings))):
        build(SoftECE.Config, settings, "here")
