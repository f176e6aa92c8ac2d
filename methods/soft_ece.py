"""Soft ECE: cross-entropy plus the expected calibration error with soft bins, which has a gradient."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Positive, Progress, Step, Task, Weight, Within, accuracy
from methods._probabilities import confidence, correctness


def memberships(r: Tensor, lowest: float, bins: int, temperature: float) -> Tensor:
    """Return u_b(r) = softmax_b(−(r − ξ_b)²/T) for a column r, ξ_b the middles of equal bins of [lowest, 1]."""
    middles = lowest + (1 - lowest) * (torch.arange(bins, dtype=r.dtype, device=r.device) + 0.5) / bins
    return torch.softmax(-((r - middles) ** 2) / temperature, 1)


def binned(logits: Tensor, labels: Tensor, bins: int, temperature: float, norm: float) -> Tensor:
    """Return (Σ_b S_b/N · |C_b − A_b|^p + 1e-10)^{1/p}: mean confidence against accuracy of bins of mass S_b.

    Without the constant the root has no finite gradient at 0.
    """
    r, c = confidence(logits)[:, None], correctness(logits, labels)[:, None]
    u = memberships(r, 0.0, bins, temperature)
    gaps = (u * (r - c)).sum(0).abs() / u.sum(0).clamp(min=1e-5)
    return ((u.mean(0) * gaps**norm).sum() + 1e-10) ** (1 / norm)


def label_binned(logits: Tensor, labels: Tensor, bins: int, temperature: float, norm: float) -> Tensor:
    """Return (1/N) Σ_i Σ_b u_b(r_i) |A_b − r_i|^p with bins from 1/K: each confidence against its bins' accuracy.

    No root, as the released code returns it. The trace of every sample in every bin leaves none empty.
    """
    r, c = confidence(logits)[:, None], correctness(logits, labels)[:, None]
    u = (1 - 1e-5) * memberships(r, 1 / logits.shape[1], bins, temperature) + 1e-5 / bins
    bin_accuracy = (u * c).sum(0) / u.sum(0)
    return (u * (bin_accuracy - r).abs() ** norm).sum(1).mean()


def no_gradient(logits: Tensor, labels: Tensor, bins: int, temperature: float, norm: float) -> Tensor:
    """Return `binned` without its gradient, a defect of a public re-implementation, kept to reproduce its results."""
    return binned(logits, labels, bins, temperature, norm).detach()


FORMS = {"binned": binned, "label_binned": label_binned, "no_gradient": no_gradient}


class SoftECE(Method):
    title = "cross-entropy plus the expected calibration error over soft bins"
    reference = "Karandikar et al., NeurIPS 2021"
    labels = {"Soft ECE": {}}
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        bins: Annotated[int, Within(1, 1000, "each bin needs images of a batch")] = 15
        temperature: Positive = 0.01
        """Of the memberships; towards 0 the bins become hard."""
        norm: Annotated[float, Within(1, 100, "a power so high is the maximum")] = 2.0
        """p."""
        weight: Weight = 1.0
        form: Literal["binned", "label_binned", "no_gradient"] = "binned"

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.soft_ece = FORMS[config.form]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        config = self.config
        error = self.soft_ece(logits, batch.labels, config.bins, config.temperature, config.norm)
        loss = cross_entropy(logits, batch.labels) + config.weight * error
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), "soft_ece": error.detach()})


METHOD = SoftECE
