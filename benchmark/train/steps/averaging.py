"""Average the weights of a training, beside it: swa and ema. The training itself stays the same to the bit."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.base.schema import identity
from benchmark.config.ingredients import AveragingConfig

BatchNorm = nn.modules.batchnorm._BatchNorm


def ema_decay(step: int, decay: float, ramp: int) -> float:
    """Return d·(1 − e^(−t/ramp)) of step t = 1, 2, …: early weights, which are far off, are soon forgotten."""
    return decay * (1 - math.exp(-step / ramp)) if ramp else decay


@dataclass
class Average:
    """A running average of trained weights: θ̄ ← θ̄ + share·(θ − θ̄)."""

    config: AveragingConfig
    count: int = 0
    """Epochs (swa) or steps (ema) that are in it."""
    weights: list[Tensor] = field(default_factory=list)
    """In the order of the method's trained parameters; empty before the first."""

    def begin(self, parameters: Sequence[Tensor]) -> None:
        """Start from the weights before the first step."""
        self.weights = [parameter.detach().clone() for parameter in parameters]

    def after_step(self, parameters: Sequence[Tensor]) -> None:
        if self.config.name == "ema":
            self.count += 1
            self.move_towards(parameters, 1 - ema_decay(self.count, self.config.decay, self.config.ramp))

    def after_epoch(self, parameters: Sequence[Tensor]) -> None:
        if self.config.name == "swa":
            self.count += 1
            self.move_towards(parameters, 1 / self.count)

    def move_towards(self, parameters: Sequence[Tensor], share: float) -> None:
        with torch.no_grad():
            torch._foreach_lerp_(self.weights, list(parameters), share)


@dataclass
class Averages:
    """All averages that are taken of one training."""

    each: list[Average]
    warmup_epochs: int
    num_epochs: int

    @classmethod
    def wanted(cls, configs: Iterable[AveragingConfig], warmup_epochs: int, num_epochs: int) -> "Averages":
        return cls([Average(config) for config in configs], warmup_epochs, num_epochs)

    def first_epoch(self, config: AveragingConfig) -> int:
        """Return the number of epochs before the first that is averaged; a warm-up trains other weights."""
        return max(config.first_epoch(self.num_epochs), self.warmup_epochs)

    def begin_epoch(self, epoch: int, parameters: Sequence[Tensor]) -> None:
        """Start the averages that are due. `epoch` epochs are over."""
        for average in self.each:
            if not average.weights and epoch >= self.first_epoch(average.config):
                average.begin(parameters)

    def after_step(self, parameters: Sequence[Tensor]) -> None:
        for average in self.each:
            if average.weights:
                average.after_step(parameters)

    def after_epoch(self, parameters: Sequence[Tensor]) -> None:
        for average in self.each:
            if average.weights:
                average.after_epoch(parameters)

    def of(self, config: AveragingConfig) -> Average:
        return next(average for average in self.each if average.config == config)

    def to_plain(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the averages as tensors and plain values; weights are listed by parameter name."""
        return {
            key_of(average.config): {"count": average.count, "weights": dict(zip(names, average.weights, strict=True))}
            for average in self.each
            if average.weights
        }

    def from_plain(self, plain: Mapping[str, Any], names: Sequence[str], device: torch.device) -> None:
        """Continue the averages that `to_plain` described."""
        for average in self.each:
            saved = plain.get(key_of(average.config))
            if saved is not None:
                average.count = saved["count"]
                average.weights = [saved["weights"][name].to(device) for name in names]

    def can_continue(self, plain: Mapping[str, Any], epoch: int, step: int) -> bool:
        """Tell whether a checkpoint of this epoch and step has every average that had begun by then."""
        begun = [each for each in self.each if (epoch, step) > (self.first_epoch(each.config), 0)]
        return all(key_of(each.config) in plain for each in begun)


def key_of(config: AveragingConfig) -> str:
    """Return the name of an average in a checkpoint."""
    return json.dumps(identity(config), sort_keys=True)


def load_average(average: Average, parameters: Sequence[Tensor]) -> None:
    """Put averaged weights in the place of the trained ones. All other state stays as it was at the end."""
    with torch.no_grad():
        if average.count:  # a try of a few steps may end before the first epoch that counts
            torch._foreach_copy_(list(parameters), average.weights)


@contextmanager
def fresh_statistics(module: nn.Module) -> Iterator["Statistics"]:
    """Compute the statistics of BatchNorm anew: each batch that passes counts the same, as with momentum None."""
    layers = [layer for layer in module.modules() if isinstance(layer, BatchNorm) and layer.track_running_stats]
    before = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 1.0  # the statistics of the last batch alone; one value for all batches recompiles nothing
    statistics = Statistics([b for layer in layers for b in (layer.running_mean, layer.running_var) if b is not None])
    try:
        yield statistics
    finally:
        statistics.install()
        for layer, momentum in zip(layers, before, strict=True):
            layer.momentum = momentum


@dataclass
class Statistics:
    """The mean of the statistics of BatchNorm over batches."""

    buffers: list[Tensor]
    means: list[Tensor] = field(default_factory=list)
    count: int = 0

    def add_batch(self) -> None:
        """Add the statistics of the batch that has just passed."""
        self.count += 1
        if self.count == 1:
            self.means = [buffer.clone() for buffer in self.buffers]
        elif self.buffers:
            torch._foreach_lerp_(self.means, self.buffers, 1 / self.count)

    def install(self) -> None:
        if self.means:
            torch._foreach_copy_(self.buffers, self.means)
