"""Soft AvUC: cross-entropy plus a price on being right but uncertain, and on being wrong but certain."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Positive, Progress, Step, Task, Weight, accuracy, check
from methods._probabilities import correctness


def mixed_entropy(logits: Tensor) -> Tensor:
    """Return H = −Σ_j p̃_j ln p̃_j with p̃ = (1−1e-5)·p + 1e-5/K, in nats."""
    p = (1 - 1e-5) * torch.softmax(logits, 1) + 1e-5 / logits.shape[1]
    return -(p * p.log()).sum(1)


def uncertain(e: Tensor, threshold: float, temperature: float) -> Tensor:
    """Return t = σ((1/T)·ln[e(1−κ) / ((1−e)κ)]), ½ at e = κ; rounding takes e beyond 1, where the logarithm ends."""
    e = e.clamp(1e-6, 1 - 1e-6)
    return torch.sigmoid((e.log() - torch.log1p(-e) - math.log(threshold / (1 - threshold))) / temperature)


def soft_counts(t: Tensor, entropy: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return n_ac, n_au, n_ic, n_iu: (accurate or inaccurate) × (certain or uncertain).

    tanh takes the entropy in nats, not the share that t is made of.
    """
    certain, doubtful = (1 - t) * (1 - entropy.tanh()), t * entropy.tanh()
    return (c * certain).sum(), (c * doubtful).sum(), ((1 - c) * certain).sum(), ((1 - c) * doubtful).sum()


def soft_avuc(n_ac: Tensor, n_au: Tensor, n_ic: Tensor, n_iu: Tensor) -> Tensor:
    """Return ln(1 + (n_au + n_ic) / (n_ac + n_iu))."""
    return torch.log1p((n_au + n_ic) / (n_ac + n_iu).clamp(min=1e-5))


NORMALISERS: dict[str, Callable[[float], float]] = {"log_classes": math.log, "classes": float}
"""K → the divisor of the entropy; "classes" is a public re-implementation's defect: e ends at ln K / K and not at 1."""


class SoftAvUC(Method):
    title = "cross-entropy plus soft accuracy-versus-uncertainty calibration"
    reference = "Karandikar et al., NeurIPS 2021"
    labels = {"Soft AvUC": {}}
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        threshold: float = 0.1
        """kappa: the share of the largest entropy from which a sample counts as uncertain."""
        temperature: Positive = 0.1
        weight: Weight = 1.0
        normaliser: Literal["log_classes", "classes"] = "log_classes"

        def __post_init__(self) -> None:
            check(0 < self.threshold < 1, f"threshold must lie between 0 and 1, got {self.threshold}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.largest_entropy = NORMALISERS[config.normaliser](task.num_classes)

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        entropy = mixed_entropy(logits)
        t = uncertain(entropy / self.largest_entropy, self.config.threshold, self.config.temperature)
        price = soft_avuc(*soft_counts(t, entropy, correctness(logits, batch.labels)))
        loss = cross_entropy(logits, batch.labels) + self.config.weight * price
        logs = {
            "accuracy": accuracy(logits, batch.labels),
            "soft_avuc": price.detach(),
            "uncertain_share": t.detach().mean(),
        }
        return Step(loss, logs=logs)


METHOD = SoftAvUC
