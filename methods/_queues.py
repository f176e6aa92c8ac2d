"""Feature queues and the momentum encoder that fills them."""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmark.interface import Progress


class Keys(NamedTuple):
    """What a queue holds. An empty slot has class −1, which matches no label."""

    features: Tensor
    predicted: Tensor
    true: Tensor


class FeatureQueue(nn.Module):
    """A ring buffer of unit features with their predicted and their true class."""

    features: Tensor
    predicted: Tensor
    true: Tensor
    pointer: Tensor
    count: Tensor

    def __init__(self, size: int, feature_dim: int, needed: int | None = None) -> None:
        super().__init__()
        self.size = size
        self.needed = size if needed is None else needed
        """It counts as full once it has taken so many."""
        # One spare row at the end takes the writes of samples that are not selected: shapes stay fixed, nothing syncs.
        self.register_buffer("features", torch.zeros(size + 1, feature_dim))
        self.register_buffer("predicted", torch.full((size + 1,), -1))
        self.register_buffer("true", torch.full((size + 1,), -1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def enqueue(self, features: Tensor, predicted: Tensor, true: Tensor, selected: Tensor) -> None:
        """Write the selected rows, newest last; of more than `size` only the newest stay."""
        order = selected.long().cumsum(0)
        total = order[-1]
        stays = selected & (order > total - self.size) if len(selected) > self.size else selected
        slot = torch.where(stays, (self.pointer + order - 1) % self.size, self.size)
        self.features.index_copy_(0, slot, features.to(self.features.dtype))
        self.predicted.index_copy_(0, slot, torch.where(stays, predicted, -1))
        self.true.index_copy_(0, slot, torch.where(stays, true, -1))
        self.pointer.copy_((self.pointer + total) % self.size)
        self.count.add_(total)

    def fill_with_noise(self, num_classes: int) -> None:
        self.features.copy_(normalize(torch.randn_like(self.features)))
        self.predicted.copy_(torch.randint_like(self.predicted, num_classes))
        self.true.copy_(self.predicted)
        self.count.fill_(self.needed)

    def full(self) -> Tensor:
        return self.count >= self.needed

    def fill(self) -> Tensor:
        return (self.count / self.size).clamp(max=1)

    def keys(self) -> Keys:
        return Keys(self.features[: self.size], self.predicted[: self.size], self.true[: self.size])


def momentum_copy(network: nn.Module) -> nn.Module:
    """Return the key encoder: a copy, never a view, of the network. No optimiser sees it."""
    return copy.deepcopy(network).requires_grad_(False)


def move_towards(key: Sequence[Tensor], network: Sequence[Tensor], momentum: float) -> None:
    """Set θ_key ← q·θ_key + (1−q)·θ. BatchNorm statistics stay the key encoder's own."""
    with torch.no_grad():
        torch._foreach_lerp_([*key], [*network], 1 - momentum)


def distance(key: nn.Module, network: nn.Module) -> Tensor:
    """Return ‖θ_key − θ‖ / ‖θ‖."""
    theirs = [p.detach() for p in network.parameters()]
    gaps = torch._foreach_sub(list(key.parameters()), theirs)
    gap, size = (torch.stack(torch._foreach_norm(list(tensors))).square().sum() for tensors in (gaps, theirs))
    return torch.sqrt(gap / size.clamp(min=1e-12))


def copy_statistics(key: nn.Module, network: nn.Module) -> None:
    """Copy the trained network's running statistics, with which a key encoder in evaluation mode normalises."""
    for mine, theirs in zip(key.buffers(), network.buffers(), strict=True):
        mine.copy_(theirs)


def leave_statistics(key: nn.Module, network: nn.Module) -> None:
    """Do nothing: in training mode the key encoder normalises with the statistics of the batch."""


def momentum_every_step(momentum: float, progress: Progress, start: int) -> float:
    return momentum


def momentum_every_epoch(momentum: float, progress: Progress, start: int) -> float:
    """Return the public code's: the encoder shares the weights in the first epoch, then moves once per epoch."""
    if progress.epoch == start:
        return 0.0
    return momentum if progress.step == progress.num_steps - 1 else 1.0


def always(positives: FeatureQueue, negatives: FeatureQueue) -> Tensor:
    return torch.ones_like(positives.full())


def until_full(positives: FeatureQueue, negatives: FeatureQueue) -> Tensor:
    return ~(positives.full() & negatives.full())


FULL_AT = {"size": 0, "more": 1}
"""How many entries beyond its size a queue must have taken to count as full."""
MOMENTUM_CADENCES = {"step": momentum_every_step, "epoch": momentum_every_epoch}
QUEUE_POLICIES = {"rolling": always, "freeze": until_full, "random": until_full}
FROZEN = ("freeze", "random")
"""Policies under which full queues never change again."""
KEY_STATISTICS = {"train": leave_statistics, "eval": copy_statistics}
