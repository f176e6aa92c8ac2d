"""CRL, correctness ranking: of two training images, the one that was right more often is to be the more confident."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, Task, Weight, accuracy
from methods._probabilities import confidence, correctness
from methods.self_adaptive import entropy


def margin(logits: Tensor) -> Tensor:
    """Return p₍₁₎ − p₍₂₎."""
    first, second = torch.softmax(logits, 1).topk(2, 1).values.unbind(1)
    return first - second


def negative_entropy(logits: Tensor) -> Tensor:
    """Return −H(p)/ln K, from −1 to 0."""
    return -entropy(logits) / math.log(logits.shape[1])


def share_right(counts: Tensor, fewest: Tensor, epochs: int) -> Tensor:
    """Return κ = (count − min)/(E − min), and 0 where every image has always been right: it orders nothing then."""
    return (counts - fewest) / (epochs - fewest).clamp(min=1)


def ranking_loss(r: Tensor, kappa: Tensor) -> Tensor:
    """Return max(0, −s(r_i − r_j) + |κ_i − κ_j|), s = sign(κ_i − κ_j), of each image and the next, the first after
    the last. Where κ is equal both terms are 0, and so is the gradient."""
    gap = kappa - kappa.roll(-1)
    return (gap.abs() - gap.sign() * (r - r.roll(-1))).relu()


CONFIDENCES = {"msp": confidence, "margin": margin, "entropy": negative_entropy}


class CRL(Method):
    """Images are counted as the step sees them, augmented and in training mode, as published: no pass is added.

    E is the number of epochs that are over, so within an epoch κ may pass 1 by 1/E.
    """

    title = "cross-entropy plus a ranking loss: more often right in training, more confident"
    reference = "Moon et al., ICML 2020"
    labels = {"CRL": {}}
    couples_samples = True
    counts: Tensor

    @dataclass(frozen=True)
    class Config:
        weight: Weight = 1.0
        """lambda, of the ranking loss."""
        confidence: Literal["msp", "margin", "entropy"] = "msp"
        """What is ranked: the largest probability, the gap to the next, or minus the entropy."""

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.register_buffer("counts", torch.zeros(task.num_train))
        self.confidence = CONFIDENCES[config.confidence]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        counts = self.counts.index_select(0, batch.indices)
        kappa = share_right(counts, self.counts.min(), max(1, progress.epoch))
        ranking = ranking_loss(self.confidence(logits), kappa).mean()
        loss = cross_entropy(logits, batch.labels) + self.config.weight * ranking
        logs = {"accuracy": accuracy(logits, batch.labels), "ranking": ranking.detach()}
        return Step(loss, carry=correctness(logits, batch.labels), logs=logs)

    def after_step(self, batch: Batch, carry: Tensor, progress: Progress) -> None:
        right = self.counts.index_select(0, batch.indices) + carry.to(self.counts.dtype)
        self.counts.index_copy_(0, batch.indices, right)

    def health(self) -> Mapping[str, Tensor]:
        return {"count_spread": self.counts.max() - self.counts.min()}


METHOD = CRL
