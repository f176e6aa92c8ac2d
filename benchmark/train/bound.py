"""Measure the generalisation bound of the main paper's Theorem 1 after each epoch of a training.

f are the softmax outputs, g = max f the confidence, c the unnormalised feature. All formulas are per sample, except
`generalisation_bound`.
"""

import math
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from benchmark.config.task import BoundConfig
from benchmark.data.dataset import Split
from benchmark.train.trainer import State, Trainer, network_of


def margin_hinge(logits: Tensor, labels: Tensor, constants: BoundConfig) -> Tensor:
    """Return L_MH = max{ max(1 + (α/2)(g/ρ' − γ/ρ), 0), max(λ(1 − β g/ρ'), 0) }, margin γ = f_y − max_{j≠y} f_j."""
    f = torch.softmax(logits, dim=1)
    f_label = f.gather(1, labels[:, None])[:, 0]
    margin = f_label - f.scatter(1, labels[:, None], -1.0).amax(dim=1)
    confidence = f.amax(dim=1) / constants.rho_prime
    wrong = 1 + constants.alpha / 2 * (confidence - margin / constants.rho)
    abstained = constants.abstention_cost * (1 - constants.beta * confidence)
    return torch.maximum(wrong, abstained).clamp(min=0)


def selective_loss(logits: Tensor, labels: Tensor, constants: BoundConfig) -> Tensor:
    """Return L₀ = 1[ŷ ≠ y]·1[g ≥ h] + λ·1[g < h]."""
    confidence, predicted = torch.softmax(logits, dim=1).max(dim=1)
    accepted = confidence >= constants.threshold
    return torch.where(accepted, (predicted != labels).to(logits.dtype), constants.abstention_cost)


def generalisation_bound(
    mean_hinge: float, variance: float, norm_squared: float, num_train: int, constants: BoundConfig
) -> float:
    """Return E[L_MH] + 4·√( (‖l‖²V + 4ρ̃² + ρ̃²‖l‖² ln(6m/δ)) / (ρ̃² m ‖l‖²) ), ρ̃ = min{ρ/(4α), ρ'/(4βλ + 2α)}."""
    c = constants
    rho = min(c.rho / (4 * c.alpha), c.rho_prime / (4 * c.beta * c.abstention_cost + 2 * c.alpha))
    logarithm = math.log(6 * num_train / c.delta)
    above = norm_squared * variance + 4 * rho**2 + rho**2 * norm_squared * logarithm
    return mean_hinge + 4 * math.sqrt(above / (rho**2 * num_train * norm_squared))


class ClassMoments:
    """Sums from which V = (1/k) Σ_i tr Cov[c | class i] follows, so that no feature has to be kept."""

    def __init__(self, num_classes: int, dim: int, device: torch.device) -> None:
        precise = torch.float32 if device.type == "mps" else torch.float64
        self.counts, self.squares = torch.zeros(2, num_classes, dtype=precise, device=device).unbind()
        self.sums = torch.zeros(num_classes, dim, dtype=precise, device=device)

    def add(self, features: Tensor, labels: Tensor) -> None:
        features = features.to(self.sums.dtype)
        self.counts.index_add_(0, labels, torch.ones_like(features[:, 0]))
        self.sums.index_add_(0, labels, features)
        self.squares.index_add_(0, labels, features.square().sum(dim=1))

    def variance(self) -> Tensor:
        """Return V, in which a class without samples counts as zero."""
        counts = self.counts.clamp(min=1)
        return (self.squares / counts - (self.sums / counts[:, None]).square().sum(dim=1)).clamp(min=0).mean()


@torch.no_grad()
def measure_bound(trainer: Trainer, state: State) -> dict[str, float]:
    """Return the parts of the bound over the training images, and L₀ over the test images, after an epoch."""
    state.method.eval()
    data, constants, network = trainer.data, trainer.job.task.bound, network_of(state.method)
    num_classes = data.num_classes
    moments = ClassMoments(num_classes, network.feature_dim, data.mean.device)
    hinges, losses = [], []
    for images, labels in labelled_batches(trainer, data.train):
        outputs, features = network(images)
        moments.add(features, labels)
        hinges.append(margin_hinge(outputs[:, :num_classes], labels, constants))
    for images, labels in labelled_batches(trainer, data.test):
        losses.append(selective_loss(network(images)[0][:, :num_classes], labels, constants))
    norm_squared = float(sum(p.detach().square().sum() for p in network.head.parameters()))
    mean_hinge, variance = float(torch.cat(hinges).mean()), float(moments.variance())
    return {
        "intra_class_variance": variance,
        "margin_hinge": mean_hinge,
        "last_layer_norm": math.sqrt(norm_squared),
        "bound": generalisation_bound(mean_hinge, variance, norm_squared, len(data.train), constants),
        "test_selective_loss": float(torch.cat(losses).mean()),
    }


def labelled_batches(trainer: Trainer, split: Split) -> Iterator[tuple[Tensor, Tensor]]:
    """Return the images of a split as they are tested, with their labels."""
    size = trainer.job.task.eval_batch_size
    batches = zip(trainer.data.eval_batches(split, size), torch.split(split.labels, size), strict=True)
    return islice(batches, trainer.job.max_steps or None)
