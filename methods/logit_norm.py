"""LogitNorm: cross-entropy of logits of fixed length, so that only their direction is trained."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Positive, Progress, Step, accuracy


def direction(logits: Tensor) -> Tensor:
    """Return z/(‖z‖₂ + 1e-7)."""
    norm: Tensor = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
    return logits / (norm + 1e-7)


class LogitNorm(Method):
    """The division is part of the loss alone: predictions are the raw logits, as published. Their length is then a
    by-product of the network, and softmax response reads it; the score "cosine logit" does not."""

    title = "cross-entropy of logits divided by their norm and a temperature"
    reference = "Wei et al., ICML 2022"
    labels = {"LogitNorm": {}}
    takes_mixed = True

    @dataclass(frozen=True)
    class Config:
        temperature: Positive = 0.04
        """tau; the loss of K classes cannot fall below ln(1 + (K−1)·e^{−√(K/(K−1))/τ})."""

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        scaled = direction(logits) / self.config.temperature
        loss = batch.mean_loss(lambda labels: cross_entropy(scaled, labels))
        norm = torch.linalg.vector_norm(logits.detach(), dim=1).mean()
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), "logit_norm": norm})


METHOD = LogitNorm
