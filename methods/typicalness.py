"""TAL, typicalness-aware learning: an image unlike those already learnt moves the direction of its logits less."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Positive, Progress, Step, Task, Within, accuracy, check
from methods._queues import FeatureQueue
from methods.logit_norm import direction

RELEASED_WRONG_SCALE = 20.0


def statistics(features: Tensor) -> Tensor:
    """Return the mean and the standard deviation of each image's features."""
    spread = features.std(1, correction=min(1, features.shape[1] - 1))
    return torch.stack([features.mean(1), spread], 1)


def nearest(found: Tensor, queue: FeatureQueue) -> Tensor:
    """Return d, the distance of each (mean, std) to the nearest in the queue; 0 while that is empty."""
    keys = queue.keys()
    gaps = torch.cdist(found, keys.features, compute_mode="donot_use_mm_for_euclid_dist")
    least = gaps.masked_fill(keys.true < 0, torch.inf).amin(1)
    return torch.where(queue.count > 0, least, 0.0)


def typicalness(distance: Tensor) -> Tensor:
    """Return τ = 1 − (d − min d)/(max d − min d) over the batch; 1 where all distances are equal."""
    above = distance - distance.min()
    return 1 - above / above.max().clamp(min=1e-8)


def length(tau: Tensor, shortest: float, longest: float) -> Tensor:
    """Return T = T_min + (1 − τ)(T_max − T_min)."""
    return shortest + (1 - tau) * (longest - shortest)


def tal_loss(logits: Tensor, labels: Tensor, tau: Tensor, scale: Tensor) -> Tensor:
    """Return τ·CE(T·z/‖z‖) + (1 − τ)·CE(z) per sample."""
    turned = cross_entropy(scale[:, None] * direction(logits), labels, reduction="none")
    return tau * turned + (1 - tau) * cross_entropy(logits, labels, reduction="none")


def released_loss(logits: Tensor, labels: Tensor, tau: Tensor, scale: Tensor) -> Tensor:
    """Return the same with both cross-entropies averaged first, so that only the mean of τ over the batch counts."""
    turned = cross_entropy(scale[:, None] * direction(logits), labels)
    return tau * turned + (1 - tau) * cross_entropy(logits, labels)


def paper_terms(tau: Tensor, right: Tensor, lengths: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Return τ, which is 1 where the prediction is wrong, and T of it."""
    tau = torch.where(right, tau, 1.0)
    return tau, length(tau, *lengths)


def released_terms(tau: Tensor, right: Tensor, lengths: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Return the same as public code has it: T = 20 where wrong, and a batch without an error is typical throughout."""
    tau = torch.where(right.all(), 1.0, tau)
    scale = torch.where(right, length(tau, *lengths), RELEASED_WRONG_SCALE)
    return torch.where(right, tau, 1.0), scale


FORMS = {"paper": (paper_terms, tal_loss), "released": (released_terms, released_loss)}


class TypicalnessAware(Method):
    """τ = 1 trains the direction of the logits alone, as LogitNorm with temperature 1/T. So it is for all images in the
    first epochs, as in public code, and as long as the queue is empty."""

    title = "typicalness-aware learning: cross-entropy or its normed form by how usual the features are"
    reference = "Liu et al., NeurIPS 2024"
    labels = {"TAL": {}, "TAL released": {"form": "released"}}
    own_scores = ("cosine logit", "SR")
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        form: Literal["paper", "released"] = "paper"
        shortest: Positive = 10.0
        """T_min, the length of the logits of the most typical images."""
        longest: Positive = 100.0
        """T_max, that of the least typical."""
        queue_size: Annotated[int, Within(1, 10**6, "every image is compared with all of it")] = 30_000
        """Right predictions to compare with, at most as many as there are images; the public CIFAR-100 setting."""
        start: Annotated[float, Within(0, 1)] = 0.05
        """The share of the epochs before distances count."""

        def __post_init__(self) -> None:
            check(self.shortest <= self.longest, f"shortest must not exceed longest = {self.longest}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.queue = FeatureQueue(min(config.queue_size, task.num_train), 2)
        self.terms, self.loss = FORMS[config.form]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, features = self.network(batch.images)
        found = statistics(features.detach().to(self.queue.features.dtype))
        predicted = logits.detach().argmax(1)
        counts = float(progress.epoch >= int(self.config.start * progress.num_epochs))
        tau = typicalness(counts * nearest(found, self.queue))
        tau, scale = self.terms(tau, predicted == batch.labels, (self.config.shortest, self.config.longest))
        loss = self.loss(logits, batch.labels, tau, scale).mean()
        logs = {"accuracy": accuracy(logits, batch.labels), "typicalness": tau.mean()}
        return Step(loss, carry=(found, predicted), logs=logs)

    def after_step(self, batch: Batch, carry: tuple[Tensor, Tensor], progress: Progress) -> None:
        found, predicted = carry
        self.queue.enqueue(found, predicted, batch.labels, predicted == batch.labels)

    def health(self) -> Mapping[str, Tensor]:
        return {"queue_fill": self.queue.fill()}


METHOD = TypicalnessAware
