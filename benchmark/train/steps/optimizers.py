"""Make optimisers, and say how the learning rate goes."""

import math
from collections.abc import Callable

import torch
from torch.optim import Optimizer

from benchmark.config.training import ScheduleConfig

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgd": lambda p, c, **how: torch.optim.SGD(p, lr=c.lr, momentum=c.momentum, weight_decay=c.weight_decay, **how),
    "adam": lambda p, c, **how: torch.optim.Adam(p, lr=c.lr, weight_decay=c.weight_decay, **how),
    "adamw": lambda p, c, **how: torch.optim.AdamW(p, lr=c.lr, weight_decay=c.weight_decay, **how),
}


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
    return base
