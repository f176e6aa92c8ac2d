"""The focal loss and its two rules for gamma against printed values, a plain loop, and where the plain form breaks."""

import math

import pytest
import torch
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Task
from methods.focal import Focal, fixed, flsd53, focal_loss
from tests.fixtures import F6_LABELS, F6_LOGITS

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
LOGITS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
LABELS = torch.arange(12) % 4
GAP = 200 * torch.eye(3)[:1].repeat(8, 1)
EXTREMES = {
    "all right by 200": (GAP, torch.zeros(8, dtype=torch.long), 0.0),
    "all wrong by 200": (GAP, torch.ones(8, dtype=torch.long), 200.0),
    "uniform": (torch.zeros(8, 3), torch.arange(8) % 3, None),
    "one image": (Z[:1].float(), Y[:1], None),
}


def step_loss(logits: Tensor, labels: Tensor, **settings: object) -> Tensor:
    method = Focal(lambda images: (images, None), Task(logits.shape[1], 6, 3), Focal.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1)).loss


def two_classes(p_label: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and labels whose label has the given probability."""
    return torch.stack([p_label.log(), (1 - p_label).log()], 1), torch.zeros(len(p_label), dtype=torch.long)


@pytest.mark.parametrize(
    ("gamma", "expected", "mean"),
    [
        (1.0, [0.05173786, 0.73584989, 0.04564001, 1.06312471, 0.01443218, 0.73811246], 0.44148285),
        (3.0, [0.00237832, 0.32813273, 0.00186458, 0.60644363, 0.00019590, 0.32985776], 0.21147882),
    ],
)
def test_f6(gamma: float, expected: list[float], mean: float) -> None:
    assert focal_loss(Z, Y, fixed(Z[:, 0], gamma)).tolist() == pytest.approx(expected, abs=1e-8)
    assert step_loss(Z, Y, gamma=gamma).item() == pytest.approx(mean, abs=1e-8)


def test_flsd53_takes_gamma_5_below_a_fifth_and_3_from_there() -> None:
    p = torch.tensor([0.1, 0.2, 0.35, 0.5, 0.9], dtype=torch.float64)
    expected = [1.35965347, 0.82403221, 0.28830740, 0.08664340, 0.00010536]
    assert focal_loss(*two_classes(p), flsd53(p, 1.0)).tolist() == pytest.approx(expected, abs=1e-8)
    without_the_edge = p[[0, 2, 3, 4]]
    mean = (2.55874184 - 0.82403221) / 4
    assert step_loss(*two_classes(without_the_edge), rule="flsd53").item() == pytest.approx(mean, abs=1e-8)


def test_equals_a_plain_loop() -> None:
    gamma = torch.linspace(0, 5, 12, dtype=torch.float64)
    loss = focal_loss(LOGITS, LABELS, gamma).tolist()
    for i in range(12):
        powers = [math.exp(z) for z in LOGITS[i].tolist()]
        p = powers[LABELS[i]] / sum(powers)
        assert loss[i] == pytest.approx(-((1 - p) ** gamma[i].item()) * math.log(p), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 3.0])
def test_gradient_by_finite_differences(gamma: float) -> None:
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: focal_loss(z, LABELS, fixed(z.detach()[:, 0], gamma)), logits)


@pytest.mark.parametrize("settings", [{"gamma": 0.5}, {"gamma": 3.0}, {"rule": "flsd53"}], ids=str)
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, settings: dict[str, object]) -> None:
    """In float32 the plain power with gamma < 1 has the gradient 0·∞ = NaN where p_y rounds to 1."""
    logits, labels, expected = EXTREMES[case]
    logits = logits.clone().requires_grad_()
    loss = step_loss(logits, labels, **settings)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
    if expected is not None:
        assert loss.item() == pytest.approx(expected, abs=1e-4)


def test_a_negative_gamma_is_refused() -> None:
    with pytest.raises(UserError, match="gamma"):
        build(Focal.Config, {"gamma": -1.0}, "here")
