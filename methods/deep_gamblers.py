"""DG, Deep Gamblers: an extra output takes bets that pay 1/o whatever the class."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.interface import Batch, Epochs, Positive, Progress, Step, accuracy, check
from methods._abstention import AbstentionMethod, abstention_mass
from methods._probabilities import at_label


def gambler_loss(outputs: Tensor, labels: Tensor, reward: float) -> Tensor:
    """Return −log(p_y + p_{k+1}/o) per sample, from logarithms, so that nothing underflows."""
    bets = torch.logaddexp(at_label(outputs, labels), outputs[:, -1] - math.log(reward))
    return torch.logsumexp(outputs, 1) - bets


class DeepGamblers(AbstentionMethod):
    title = "Deep Gamblers: an abstention output that pays 1/reward"
    reference = "Liu et al., NeurIPS 2019"
    labels = {"DG": {}}
    warmup = "cross_entropy"
    takes_mixed = True

    @dataclass(frozen=True)
    class Config:
        warmup_epochs: Epochs = 100
        reward: Positive = 2.2
        """o, between 1 (always abstain) and the number of classes (never)."""

        def __post_init__(self) -> None:
            check(self.reward > 1, f"reward must be above 1, got {self.reward}")

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        outputs, _ = self.network(batch.images)
        loss = batch.mean_loss(lambda labels: gambler_loss(outputs, labels, self.config.reward).mean())
        logs = {"accuracy": accuracy(outputs[:, :-1], batch.labels), "abstention_mass": abstention_mass(outputs)}
        return Step(loss, logs=logs)


METHOD = DeepGamblers
