"""MMCE: cross-entropy plus the maximum mean calibration error, a kernel distance between confidence and correctness."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, Task, Weight, accuracy
from methods._probabilities import confidence, correctness

KERNEL_WIDTH = 0.4


def laplacian_kernel(r: Tensor) -> Tensor:
    """Return K_ij = e^{−|r_i − r_j| / 0.4}."""
    return torch.exp(-(r[:, None] - r).abs() / KERNEL_WIDTH)


def mmce(weights: Tensor, kernel: Tensor) -> Tensor:
    """Return sqrt(aᵀKa + 1e-10), and exactly 0 where no sample has a weight; the constant keeps the gradient finite.

    The root is the paper's; public code takes none of the unweighted form.
    """
    squared = (weights @ kernel @ weights).clamp(min=0)
    return (squared + 1e-10).sqrt() * weights.any().to(weights.dtype)


def class_weights(r: Tensor, c: Tensor, power: int) -> Tensor:
    """Return (1−r)/m^power of the m right samples, −r/n^power of the n wrong ones; all 0 unless there are both."""
    right, wrong = c.sum(), (1 - c).sum()
    both = (right > 0) & (wrong > 0)
    return both * (c * (1 - r) / right.clamp(min=1) ** power - (1 - c) * r / wrong.clamp(min=1) ** power)


def once(r: Tensor, c: Tensor) -> Tensor:
    """Return the weights of the paper's MMCE_w: the two means (1−r)/m and r/n."""
    return class_weights(r, c, 1)


def twice(r: Tensor, c: Tensor) -> Tensor:
    """Return the weights of all public code, divided by m and n once more; the published weight of 2 is for these."""
    return class_weights(r, c, 2)


def unweighted(r: Tensor, c: Tensor) -> Tensor:
    """Return the weights of MMCE_m: (c−r)/N."""
    return (c - r) / len(r)


NORMALISERS = {"twice": twice, "once": once, "unweighted": unweighted}


class MMCE(Method):
    title = "cross-entropy plus the maximum mean calibration error"
    reference = "Kumar et al., ICML 2018"
    labels = {"MMCE": {}}
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        weight: Weight = 2.0
        """lambda; its size means something only together with the normaliser."""
        normaliser: Literal["twice", "once", "unweighted"] = "twice"

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.weights = NORMALISERS[config.normaliser]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        r, c = confidence(logits), correctness(logits, batch.labels)
        kernel = laplacian_kernel(r)
        error = mmce(self.weights(r, c), kernel)
        loss = cross_entropy(logits, batch.labels) + self.config.weight * error
        logs = {
            "accuracy": accuracy(logits, batch.labels),
            "mmce": error.detach(),
            "kernel_mean": kernel.detach().mean(),
        }
        return Step(loss, logs=logs)


METHOD = MMCE
