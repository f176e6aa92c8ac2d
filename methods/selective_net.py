"""SelectiveNet: a selection head beside the classifier, trained for one coverage at a time."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import (
    Batch,
    Divide,
    Doubt,
    Method,
    Progress,
    Step,
    Task,
    Weight,
    Within,
    accuracy,
    check,
    later,
)

SMALLEST_COVERAGE = 1e-3
"""Keeps the divided risk finite when everything is rejected."""


def divided_risk(losses: Tensor, selection: Tensor) -> Tensor:
    """Return Σ g_i ℓ_i / Σ g_i, the risk of what is kept (as in the paper)."""
    return (losses * selection).mean() / selection.mean().clamp(min=SMALLEST_COVERAGE)


def undivided_risk(losses: Tensor, selection: Tensor) -> Tensor:
    """Return mean g_i ℓ_i (as in the public code)."""
    return (losses * selection).mean()


def coverage_penalty(selection: Tensor, coverage: float) -> Tensor:
    """Return max(0, c − mean g)²."""
    return (coverage - selection.mean()).relu().square()


RISKS = {"paper": divided_risk, "released": undivided_risk}


class SelectiveNet(Method):
    title = "SelectiveNet: a selection head trained for one coverage"
    reference = "Geifman & El-Yaniv, ICML 2019"
    labels = {"SelectiveNet": {"head_dropout": True}}
    doubts = {"reject": Doubt("selector", minus=True)}
    own_scores = ("selection", "SR")
    one_per_coverage = "coverage"
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        coverage: float = 0.8
        """c, set by the task's model_coverages."""
        penalty: Weight = 32.0
        """lambda of the coverage constraint."""
        balance: float = 0.5
        """alpha: share of the selective loss; the rest trains an auxiliary classifier on everything."""
        hidden: Annotated[int, Within(1, 65_536, "its weights fit into no memory")] = 512
        risk_form: Literal["paper", "released"] = "paper"
        head_dropout: bool = later(False)
        """All three heads read the features after one dropout, as in both public codes; else the classifier alone."""

        def __post_init__(self) -> None:
            check(0 < self.coverage <= 1, f"coverage must lie in (0, 1], got {self.coverage}")
            check(0 <= self.balance <= 1, f"balance must lie in [0, 1], got {self.balance}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        # The division stands in the place of a BatchNorm gain that begins small.
        body = [nn.Linear(task.feature_dim, config.hidden), nn.ReLU(), nn.BatchNorm1d(config.hidden)]
        self.selector = nn.Sequential(*body, Divide(10), nn.Linear(config.hidden, 1))
        self.auxiliary = nn.Linear(task.feature_dim, task.num_classes)
        self.risk = RISKS[config.risk_form]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, hidden = self.inputs(batch.images)
        selection = torch.sigmoid(self.selector(hidden)[:, 0])
        risk = self.risk(cross_entropy(logits, batch.labels, reduction="none"), selection)
        selective = risk + self.config.penalty * coverage_penalty(selection, self.config.coverage)
        everything = cross_entropy(self.auxiliary(hidden), batch.labels)
        loss = self.config.balance * selective + (1 - self.config.balance) * everything
        logs = {"accuracy": accuracy(logits, batch.labels), "coverage": selection.detach().mean()}
        return Step(loss, logs=logs)

    def inputs(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits, and what the selection and the auxiliary head read."""
        network: Any = self.network
        if not self.config.head_dropout:
            logits, features = network(images)
            return logits, features
        logits, _, hidden = network.with_hidden(images)
        return logits, hidden


METHOD = SelectiveNet
