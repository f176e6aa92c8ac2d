"""SelectiveNet: its loss term by term, its heads, and one training for each coverage."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from benchmark.config.training import NetworkConfig
from benchmark.interface import Batch, Progress, Task
from benchmark.measure.prediction import Prediction
from benchmark.train.networks import build_network
from methods.selective_net import SelectiveNet, coverage_penalty, divided_risk, undivided_risk
from tests.fixtures import F6_LABELS, F6_LOGITS

LOSSES, SELECTION = torch.tensor([0.2, 1.5, 0.7, 3.0]), torch.tensor([0.9, 0.2, 0.6, 0.1])


def test_risks_and_penalty_by_hand() -> None:
    kept = 0.2 * 0.9 + 1.5 * 0.2 + 0.7 * 0.6 + 3.0 * 0.1
    assert divided_risk(LOSSES, SELECTION).item() == pytest.approx(kept / 1.8)
    assert undivided_risk(LOSSES, SELECTION).item() == pytest.approx(kept / 4)
    assert coverage_penalty(SELECTION, 0.8).item() == pytest.approx((0.8 - 0.45) ** 2)
    assert coverage_penalty(SELECTION, 0.4).item() == 0


@pytest.mark.parametrize("risk", [divided_risk, undivided_risk])
def test_gradients_by_finite_differences(risk: object) -> None:
    losses, selection = LOSSES.double().requires_grad_(), SELECTION.double().requires_grad_()
    assert torch.autograd.gradcheck(risk, (losses, selection))
    assert torch.autograd.gradcheck(lambda g: coverage_penalty(g, 0.8), selection)


def test_rejecting_everything_stays_finite() -> None:
    selection = torch.full((4,), 1e-12, requires_grad=True)
    divided_risk(LOSSES, selection).backward()
    assert torch.isfinite(selection.grad).all()


class Fixed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor(F6_LOGITS).float())

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.logits, 2 * self.logits


@pytest.mark.parametrize("form", ["paper", "released"])
def test_total(form: str) -> None:
    torch.manual_seed(0)
    config = SelectiveNet.Config(coverage=0.9, hidden=4, balance=0.3, penalty=10.0, risk_form=form)
    method = SelectiveNet(Fixed(), Task(3, 6, 3), config).train()
    labels = torch.tensor(F6_LABELS)
    step = method.training_step(Batch((torch.zeros(6, 1, 2, 2),), labels, labels), Progress(0, 1, 0, 1))
    logits, features = method.network(torch.zeros(1))
    hidden = torch.relu(features @ method.selector[0].weight.T + method.selector[0].bias)
    hidden = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt() / 10
    g = torch.sigmoid(hidden @ method.selector[4].weight.T + method.selector[4].bias)[:, 0]
    risk = (g * cross_entropy(logits, labels, reduction="none")).mean() / (g.mean() if form == "paper" else 1)
    auxiliary = cross_entropy(features @ method.auxiliary.weight.T + method.auxiliary.bias, labels)
    expected = 0.3 * (risk + 10 * max(0, 0.9 - g.mean().item()) ** 2) + 0.7 * auxiliary
    assert step.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert step.logs["coverage"].item() == pytest.approx(g.mean().item(), rel=1e-5)


@pytest.mark.parametrize("dropped", [True, False])
def test_all_heads_read_the_features_after_the_same_dropout(dropped: bool) -> None:
    """The label follows both public codes; without the setting only the classifier reads what dropout leaves."""
    torch.manual_seed(0)
    network = build_network(NetworkConfig("small_cnn", (8,), dropout=0.5), 3, (1, 4, 4))
    settings = dict(SelectiveNet.labels["SelectiveNet"]) if dropped else {}
    method = SelectiveNet(network, Task(3, 6, network.feature_dim), SelectiveNet.Config(hidden=4, **settings)).train()
    seen: dict[str, torch.Tensor] = {}
    heads = {"classifier": network.head, "selector": method.selector, "auxiliary": method.auxiliary}
    for name, head in heads.items():
        head.register_forward_pre_hook(lambda _, inputs, name=name: seen.update({name: inputs[0]}))
    labels = torch.arange(6) % 3
    method.training_step(Batch((torch.randn(6, 1, 4, 4),), labels, labels), Progress(0, 1, 0, 1))
    assert ((seen["classifier"] == 0).float().mean() > 0.3).item(), "dropout is on"
    for name in ("selector", "auxiliary"):
        assert torch.equal(seen[name], seen["classifier"]) == dropped


def test_the_selection_head_ranks() -> None:
    stored = Prediction(F6_LOGITS, None, {"reject": np.array([3.0, -1.0, 2.0, 0.0, -5.0, 1.0])})
    scores = SelectiveNet.scores(stored)
    assert list(scores) == ["selection", "SR"]
    assert np.argsort(-scores["selection"]).tolist() == [4, 1, 3, 5, 2, 0]
