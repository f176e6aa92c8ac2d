"""Make optimisers, and say how the learning rate goes."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from benchmark.config.training import OptimizerConfig, ScheduleConfig

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgd": lambda p, c, **how: torch.optim.SGD(p, lr=c.lr, momentum=c.momentum, weight_decay=c.weight_decay, **how),
    "adam": lambda p, c, **how: torch.optim.Adam(p, lr=c.lr, weight_decay=c.weight_decay, **how),
    "adamw": lambda p, c, **how: torch.optim.AdamW(p, lr=c.lr, weight_decay=c.weight_decay, **how),
}
OWN_RATE = "base_lr"
"""In a group of parameters: its learning rate before the schedule, where that is not optimizer.lr."""


def with_rates(trained: Sequence[nn.Parameter], body: Iterable[nn.Parameter], config: OptimizerConfig) -> Any:
    """Return the parameters as an optimiser takes them: in two groups, body first, where the head has its own rate."""
    if not config.head_lr:
        return trained
    of_body = set(body)
    inner = [parameter for parameter in trained if parameter in of_body]
    outer = [parameter for parameter in trained if parameter not in of_body]
    groups: list[dict[str, Any]] = [{"params": inner}, {"params": outer, OWN_RATE: config.head_lr}]
    return [group for group in groups if group["params"]]


def set_rates(
    optimizer: Optimizer, base: float, schedule: ScheduleConfig, epoch: int, fraction: float, num_epochs: int
) -> None:
    """Set the learning rate of each group of parameters for a step."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(group.get(OWN_RATE, base), schedule, epoch, fraction, num_epochs)


def learning_rate(base: float, schedule: ScheduleConfig, epoch: int, fraction: float, num_epochs: int) -> float:
    """Return the rate at `fraction` ∈ [0, 1) of an epoch: a pure function, so resuming needs no scheduler state."""
    if 0 < schedule.hold_from <= epoch:
        return base * schedule.hold_rate
    if schedule.name == "step":
        return float(base * schedule.factor ** (epoch // schedule.every))
    if schedule.name == "cosine":
        return base * 0.5 * (1 + math.cos(math.pi * (epoch + fraction) / num_epochs))
    if schedule.name == "cyclic":
        length = math.ceil(num_epochs / schedule.cycles)
        return base * 0.5 * (1 + math.cos(math.pi * ((epoch + fraction) % length) / length))
    if schedule.name == "one-cycle":
        return base * one_cycle((epoch + fraction) / num_epochs, schedule.rise)
    return base


def one_cycle(done: float, rise: float) -> float:
    """Return the share of the full rate: it rises in a line from a tenth, then falls along a cosine to zero."""
    if done < rise:
        return 0.1 + 0.9 * done / rise
    return 0.5 * (1 + math.cos(math.pi * (done - rise) / (1 - rise)))
