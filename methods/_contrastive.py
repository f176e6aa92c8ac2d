"""Shared parts of the contrastive family: the confidence-aware loss, the feature queues, the momentum encoder."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from benchmark.interface import Progress

MASKED = -1e9
"""Stands for log 0: finite, so that an empty set of negatives gives a zero gradient and not NaN."""

PairLoss = Callable[[Tensor, Tensor, float], Tensor]


class FeatureQueue(nn.Module):
    """A ring buffer of unit features filed under a class. Empty slots have class −1, which matches no label."""

    features: Tensor
    labels: Tensor
    pointer: Tensor
    count: Tensor

    def __init__(self, size: int, feature_dim: int) -> None:
        super().__init__()
        self.size = size
        # One spare row at the end takes the writes of samples that are not selected: shapes stay fixed, nothing syncs.
        self.register_buffer("features", torch.zeros(size + 1, feature_dim))
        self.register_buffer("labels", torch.full((size + 1,), -1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def enqueue(self, features: Tensor, labels: Tensor, selected: Tensor) -> None:
        """Write the selected rows, newest last; of more than `size` only the newest stay."""
        order = selected.long().cumsum(0)
        total = order[-1]
        stays = selected & (order > total - self.size)
        slot = torch.where(stays, (self.pointer + order - 1) % self.size, self.size)
        self.features.index_copy_(0, slot, features.to(self.features.dtype))
        self.labels.index_copy_(0, slot, torch.where(stays, labels, -1))
        self.pointer.copy_((self.pointer + total) % self.size)
        self.count.add_(total)

    def full(self) -> Tensor:
        return self.count >= self.size

    def entries(self) -> tuple[Tensor, Tensor]:
        return self.features[: self.size], self.labels[: self.size]


def paper_pair_loss(positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """log(e^{s_p/τ} + Σ_n e^{s_n/τ}) − s_p/τ = softplus(logsumexp_n(s_n/τ) − s_p/τ) for each (anchor, positive)."""
    return softplus(negative.logsumexp(1, keepdim=True) - positive)


def released_pair_loss(positive: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """What the public code computes: s_p is not divided by τ, and the maximum it subtracts is not restored.

    (τ/0.1) · [ paper − s_p − max(0, (max_n s_n − s_p)/τ) ]; may be negative.
    """
    hardest = negative.max(1, keepdim=True).values
    slip = temperature * positive + (hardest - positive).relu()
    return (paper_pair_loss(positive, negative, temperature) - slip) * (temperature / 0.1)


PAIR_LOSSES: dict[str, PairLoss] = {"paper": paper_pair_loss, "released": released_pair_loss}


def csc_loss(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    positives: tuple[Tensor, Tensor],
    negatives: tuple[Tensor, Tensor],
    temperature: float,
    pair_loss: PairLoss = paper_pair_loss,
) -> Tensor:
    """weight_i · (1/|P(y_i)|) · Σ_{p∈P(y_i)} pair_loss(s_ip/τ, s_in/τ) per anchor; 0 where P(y_i) is empty.

    P(y), N(y): entries of the positive and the negative queue filed under class y. Nothing is larger than B×K.
    """
    positive = features @ positives[0].T / temperature
    negative = features @ negatives[0].T / temperature
    in_p = labels[:, None] == positives[1]
    in_n = labels[:, None] == negatives[1]
    pairs = pair_loss(positive, torch.where(in_n, negative, MASKED), temperature)
    return weight * torch.where(in_p, pairs, 0.0).sum(1) / in_p.sum(1).clamp(min=1)


def momentum_copy(network: nn.Module) -> nn.Module:
    """The key encoder: a copy, never a view, of the network. No optimiser sees it."""
    return copy.deepcopy(network).requires_grad_(False)


def move_towards(key: nn.Module, network: nn.Module, momentum: float) -> None:
    """θ_key ← q·θ_key + (1−q)·θ. Parameters only: BatchNorm statistics stay the key encoder's own."""
    torch._foreach_lerp_(list(key.parameters()), [p.detach() for p in network.parameters()], 1 - momentum)


def copy_statistics(key: nn.Module, network: nn.Module) -> None:
    """A key encoder in evaluation mode normalises with the trained network's running statistics."""
    for mine, theirs in zip(key.buffers(), network.buffers(), strict=True):
        mine.copy_(theirs)


def momentum_every_step(momentum: float, progress: Progress, start: int) -> float:
    return momentum


def momentum_every_epoch(momentum: float, progress: Progress, start: int) -> float:
    """The public code: key encoder and network share their weights in the first epoch, then move once per epoch."""
    if progress.epoch == start:
        return 0.0
    return momentum if progress.step == progress.num_steps - 1 else 1.0


MOMENTUM_CADENCES = {"step": momentum_every_step, "epoch": momentum_every_epoch}


def always(positives: FeatureQueue, negatives: FeatureQueue) -> Tensor:
    return torch.ones_like(positives.full())


def until_full(positives: FeatureQueue, negatives: FeatureQueue) -> Tensor:
    return ~(positives.full() & negatives.full())


QUEUE_POLICIES = {"rolling": always, "freeze": until_full}
