"""SELE and ConfidNet: their losses against the oracle and plain loops, and what they learn."""

import math

import pytest
import torch
from torch import Tensor, nn

from benchmark.check.harness import small
from benchmark.interface import Batch, Progress, Task
from methods import Registry
from methods.confid_net import ConfidNet, true_class_probability
from methods.sele import SelectiveLoss, loss_regression, sele_proxy
from tests.fixtures import F6_LABELS, F6_LOGITS, F6_RESPONSE

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
ERROR = (Z.argmax(1) != Y).double()
PROGRESS = Progress(0, 1, 0, 1)


class Frozen(nn.Module):
    """Says the logits of the fixture, whatever it sees; its features are told apart by one number."""

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return Z.float(), images


def test_sele_on_f6() -> None:
    s = -torch.tensor(F6_RESPONSE)
    assert sele_proxy(s, ERROR).item() == pytest.approx(0.31375263, abs=1e-8)


def test_sele_equals_a_plain_loop() -> None:
    s = torch.randn(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    error = (torch.arange(9) % 3 == 0).double()
    values = s.tolist()
    expected = sum(e * math.log1p(math.exp(b - a)) for a, e in zip(values, error.tolist(), strict=True) for b in values)
    assert sele_proxy(s, error).item() == pytest.approx(expected / 81, rel=1e-12)
    assert loss_regression(s, error).item() == pytest.approx(float(((s - error) ** 2).mean()), rel=1e-12)


@pytest.mark.parametrize("gap", [-1e3, 0.0, 1e3])
@pytest.mark.parametrize("wrong", [0.0, 1.0])
def test_sele_is_finite(gap: float, wrong: float) -> None:
    s = torch.tensor([0.0, gap, -gap], requires_grad=True)
    loss = sele_proxy(s, torch.full((3,), wrong))
    loss.backward()
    assert torch.isfinite(loss)
    assert s.grad is not None
    assert torch.isfinite(s.grad).all()


def test_the_target_of_confid_net_is_the_probability_of_the_label() -> None:
    expected = [0.78559703, 0.33222499, 0.79787603, 0.24472847, 0.88349207, 0.33149896]
    assert true_class_probability(Z, Y).tolist() == pytest.approx(expected, abs=1e-8)


def test_the_loss_of_confid_net() -> None:
    method = ConfidNet(Frozen(), Task(3, 6, 2), ConfidNet.Config(hidden=4, layers=1))
    images = torch.randn(6, 2, generator=torch.Generator().manual_seed(1))
    step = method.training_step(Batch((images,), Y, torch.arange(6)), PROGRESS)
    confidence = 1 / (1 + torch.exp(method.doubt(images)))
    expected = (confidence - true_class_probability(Z, Y)).square().mean()
    assert step.loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert method.predict(images).aux["uncertainty"].tolist() == pytest.approx(method.doubt(images).tolist())


@pytest.mark.parametrize("method_class", [SelectiveLoss, ConfidNet])
def test_errors_become_uncertain(method_class: type[SelectiveLoss] | type[ConfidNet]) -> None:
    """Six samples whose features give them away: after some steps the wrong ones are the least certain."""
    torch.manual_seed(0)
    method = method_class(Frozen(), Task(3, 6, 6), method_class.Config(hidden=16, layers=1))
    optimizer = torch.optim.Adam([p for p in method.parameters() if p.requires_grad], lr=0.02)
    batch = Batch((torch.eye(6),), Y, torch.arange(6))
    for _ in range(300):
        optimizer.zero_grad()
        method.training_step(batch, PROGRESS).loss.backward()
        optimizer.step()
    doubt = method.doubt(torch.eye(6)).detach()
    wrong = ERROR.bool()
    assert doubt[wrong].min() > doubt[~wrong].max()


@pytest.mark.parametrize(("name", "label"), [("sele", "SELE"), ("confid_net", "ConfidNet")])
def test_the_network_is_frozen_in_evaluation_mode(name: str, label: str) -> None:
    method = small(Registry().get(name), label).make(dropout=0.5).train()
    assert method.head.training
    assert not any(module.training for module in method.network.modules())
    assert not any(parameter.requires_grad for parameter in method.network.parameters())
    assert all(parameter.requires_grad for parameter in method.head.parameters())
