"""CCL-SC: cross-entropy plus a contrastive loss that pulls towards right and pushes from wrong features of a class."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from benchmark.interface import Batch, Method, Progress, Step, Task, accuracy
from benchmark.schema import check
from methods._contrastive import (
    MOMENTUM_CADENCES,
    PAIR_LOSSES,
    QUEUE_POLICIES,
    FeatureQueue,
    copy_statistics,
    csc_loss,
    momentum_copy,
    move_towards,
)


def softmax_response(logits: Tensor) -> Tensor:
    """SR = max_j p_j, detached: it weighs an anchor and is not trained."""
    return torch.softmax(logits.detach(), 1).amax(1)


def unweighted(logits: Tensor) -> Tensor:
    return torch.ones_like(logits[:, 0])


def all_anchors(logits: Tensor, labels: Tensor) -> Tensor:
    return torch.ones_like(labels, dtype=torch.bool)


def correct_anchors(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.detach().argmax(1) == labels


WEIGHTS = {"sr": softmax_response, "none": unweighted}
ANCHORS = {"all": all_anchors, "correct": correct_anchors}


class ConfidenceAwareContrast(Method):
    title = "confidence-aware contrastive learning with two feature queues and a momentum encoder"
    reference = "Wu et al., ICML 2024"
    labels = {"CCL-SC": {}}
    warmup = "cross_entropy"

    @dataclass(frozen=True)
    class Config:
        warmup_epochs: int = 150
        """E_s: epochs of cross-entropy before the momentum encoder is copied and the queues begin to fill."""
        momentum: float = 0.99
        """q of the momentum encoder."""
        queue_size: int = 3000
        """s, the length of each queue."""
        weight: float = 1.0
        """w of the contrastive loss."""
        temperature: float = 0.1
        loss_form: Literal["paper", "released"] = "paper"
        queue_policy: Literal["rolling", "freeze"] = "rolling"
        """rolling: every batch is enqueued (the paper's prose); freeze: full queues stay as they are (Algorithm 1)."""
        momentum_cadence: Literal["step", "epoch"] = "step"
        key_mode: Literal["train", "eval"] = "train"
        anchors: Literal["all", "correct"] = "all"
        weighting: Literal["sr", "none"] = "sr"

        def __post_init__(self) -> None:
            check(0 <= self.momentum <= 1, f"momentum must lie in [0, 1], got {self.momentum}")
            check(self.queue_size >= 1, f"queue_size must be at least 1, got {self.queue_size}")
            check(self.temperature > 0, f"temperature must be positive, got {self.temperature}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.key = momentum_copy(network)
        self.positives = FeatureQueue(config.queue_size, task.feature_dim)
        self.negatives = FeatureQueue(config.queue_size, task.feature_dim)
        self.pair_loss = PAIR_LOSSES[config.loss_form]
        self.accepts = QUEUE_POLICIES[config.queue_policy]
        self.momentum_now = MOMENTUM_CADENCES[config.momentum_cadence]
        self.anchors, self.weighting = ANCHORS[config.anchors], WEIGHTS[config.weighting]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, features = self.network(batch.images)
        weight = self.weighting(logits) * self.anchors(logits, batch.labels)
        contrast = csc_loss(
            normalize(features),
            batch.labels,
            weight,
            self.positives.entries(),
            self.negatives.entries(),
            self.config.temperature,
            self.pair_loss,
        ).mean()
        active = self.started().to(contrast.dtype)
        loss = cross_entropy(logits, batch.labels) + self.config.weight * active * contrast
        logs = {
            "accuracy": accuracy(logits, batch.labels),
            "contrast": active * contrast.detach(),
            "contrast_active": active,
            "negative_fill": (self.negatives.count / self.negatives.size).clamp(max=1),
        }
        return Step(loss, logs=logs)

    def after_step(self, batch: Batch, carry: None, progress: Progress) -> None:
        self.key.train(self.config.key_mode == "train")
        logits, features = self.key(batch.images)
        predicted = logits.argmax(1)
        right, accepts = predicted == batch.labels, self.accepts(self.positives, self.negatives)
        keys = normalize(features)
        self.positives.enqueue(keys, predicted, right & accepts)
        self.negatives.enqueue(keys, predicted, ~right & accepts)
        move_towards(
            self.key, self.network, self.momentum_now(self.config.momentum, progress, self.config.warmup_epochs)
        )
        if self.config.key_mode == "eval":
            copy_statistics(self.key, self.network)

    def started(self) -> Tensor:
        """The contrastive loss waits until both queues have been filled once."""
        return self.positives.full() & self.negatives.full()

    def notes(self) -> list[str]:
        if bool(self.started()):
            return []
        held = f"{int(self.positives.count)} right and {int(self.negatives.count)} wrong predictions"
        return [f"the contrastive loss never started: its queues of {self.negatives.size} met {held}"]


METHOD = ConfidenceAwareContrast
