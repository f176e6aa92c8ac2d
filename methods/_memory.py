"""What the contrastive family remembers: a key encoder and two feature queues, and the loss of a batch against them."""

from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmark.interface import Batch, Progress, Task
from methods._contrastive import ANCHORS, WEIGHTS, ContrastConfig
from methods._queues import (
    FROZEN,
    FULL_AT,
    KEY_STATISTICS,
    MOMENTUM_CADENCES,
    QUEUE_POLICIES,
    FeatureQueue,
    distance,
    momentum_copy,
    move_towards,
)


class ContrastiveMemory(nn.Module):
    """Key encoder and queues, the loss of a batch against them, and how both move on."""

    active_steps: Tensor
    at_rest: Tensor

    def __init__(self, network: nn.Module, task: Task, config: ContrastConfig) -> None:
        super().__init__()
        self.config, self.num_classes = config, task.num_classes
        self.key = momentum_copy(network)
        self.before = momentum_copy(network) if config.momentum_order == "before" else None
        """The network as it stood before the optimiser step, which a method sees only when it is over."""
        needed = config.queue_size + FULL_AT[config.full_at]
        self.positives = FeatureQueue(config.queue_size, task.feature_dim, needed)
        self.negatives = FeatureQueue(config.queue_size, task.feature_dim, needed)
        if config.queue_policy == "random":
            self.positives.fill_with_noise(task.num_classes)
            self.negatives.fill_with_noise(task.num_classes)
        self.register_buffer("active_steps", torch.zeros((), dtype=torch.long))
        self.listed: tuple[list[Tensor], list[Tensor], list[Tensor]] | None = None
        self.register_buffer("at_rest", torch.zeros((), dtype=torch.bool))
        self.resting = False
        self.register_load_state_dict_post_hook(ContrastiveMemory.rest_as_saved)  # type: ignore[no-untyped-call]
        self.contrast = config.contrast()
        self.accepts = QUEUE_POLICIES[config.queue_policy]
        self.momentum_now = MOMENTUM_CADENCES[config.momentum_cadence]
        self.take_statistics = KEY_STATISTICS[config.key_mode]
        self.anchors, self.weighting = ANCHORS[config.anchors], WEIGHTS[config.weighting]

    def rest(self, *_: object) -> None:
        """Take no more keys once frozen queues are full. Called between epochs, where reading a value costs nothing."""
        self.resting = self.config.queue_policy in FROZEN and bool(self.full())
        self.at_rest.fill_(self.resting)

    def rest_as_saved(self, keys: Any) -> None:
        """Rest as the loaded state says. An old one without `at_rest` was saved between epochs, where `rest` is due."""
        absent = [name for name in keys.missing_keys if name.endswith("at_rest")]
        for name in absent:
            keys.missing_keys.remove(name)
        if absent:
            self.rest()
        self.resting = bool(self.at_rest)

    def active(self, progress: Progress) -> Tensor:
        """Return 1 where both queues have been filled once and the loss has reached its epoch, else 0."""
        return self.full() * float(progress.epoch >= self.config.warmup_epochs + self.config.fill_epochs)

    def loss(
        self, outputs: Tensor, features: Tensor, labels: Tensor, progress: Progress
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return w · mean contrastive loss, 0 until it starts, and its logs."""
        predicted = outputs[:, : self.num_classes].detach().argmax(1)
        weight = self.weighting(outputs, self.num_classes) * self.anchors(predicted, labels)
        keys = self.positives.keys(), self.negatives.keys()
        contrast = self.contrast(normalize(features), labels, weight, *keys, self.config.temperature).mean()
        active = self.active(progress)
        logs = {"contrast": active * contrast.detach(), "contrast_active": active}
        return self.config.weight * active * contrast, logs

    def after_step(self, batch: Batch, network: nn.Module, progress: Progress) -> None:
        """File the batch's keys under their predicted class, then move the key encoder."""
        self.active_steps.add_(self.active(progress) > 0)
        if self.resting:
            return
        self.key.train(self.config.key_mode == "train")
        outputs, features = self.key(batch.images)
        predicted = outputs[:, : self.num_classes].argmax(1)
        right, accepts = predicted == batch.labels, self.accepts(self.positives, self.negatives)
        keys = normalize(features)
        self.positives.enqueue(keys, predicted, batch.labels, right & accepts)
        self.negatives.enqueue(keys, predicted, batch.labels, ~right & accepts)
        momentum = self.momentum_now(self.config.momentum, progress, self.config.warmup_epochs)
        key, now, aim = self.lists(network)
        move_towards(key, aim, momentum)
        self.take_statistics(self.key, network)
        if self.before is not None:
            torch._foreach_copy_(aim, now)

    def _apply(self, *arguments: Any, **options: Any) -> Self:
        """Forget the listed parameters: moving to a device may replace them."""
        self.listed = None
        super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]
        return self

    def lists(self, network: nn.Module) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return the parameters of key encoder, network and the encoder's aim. Listing them in every step is slow."""
        if self.listed is None:
            aim = network if self.before is None else self.before
            self.listed = [*self.key.parameters()], [*network.parameters()], [*aim.parameters()]
        return self.listed

    def full(self) -> Tensor:
        return self.positives.full() & self.negatives.full()

    def health(self, network: nn.Module) -> Mapping[str, Tensor]:
        return {
            "positive_fill": self.positives.fill(),
            "negative_fill": self.negatives.fill(),
            "key_distance": distance(self.key, network),
        }

    def notes(self) -> list[str]:
        if int(self.active_steps):
            return []
        held = f"{int(self.positives.count)} right and {int(self.negatives.count)} wrong predictions"
        waited = f" and it was to wait {self.config.fill_epochs} epochs" if self.config.fill_epochs else ""
        return [f"the contrastive loss never started: its queues of {self.negatives.size} met {held}{waited}"]
