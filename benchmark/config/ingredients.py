"""Settings of the ingredients that go with every method, and the constants that they stand for.

Each is a field of a task, neutral where a task says nothing. Results depend on what is here, beyond what ids say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from benchmark.base.limits import Weight, Within
from benchmark.base.schema import check, later

MOST_STEPS = Within(0, 10**9, "no training has more steps")
NONE = "none"
"""The level of a factor without its ingredient."""


@dataclass(frozen=True)
class AveragingConfig:
    """An average of the weights. It does not change the training: one training gives its last weights and its average.

    swa: the mean of the weights after each epoch from a start on. ema: θ̄ ← d·θ̄ + (1−d)·θ after each step, with
    d = decay·(1 − e^(−t/ramp)) in step t. It begins with the first epoch that the method itself trains.
    """

    name: Literal["none", "swa", "ema"] = later("none")
    start: float = later(0.6)
    """swa: the share of the epochs before the first that counts; never within a method's warm-up."""
    rate: Annotated[float, Within(0, 1000, "no training survives such steps")] = later(0.0)
    """swa: from the start on, hold the learning rate at so many times optimizer.lr. This is another training, as the
    published recipe has it (0.5); 0 averages along the task's own schedule."""
    decay: float = later(0.9998)
    """ema: d, once the ramp is over."""
    ramp: Annotated[int, MOST_STEPS] = later(2000)
    """ema: the number of steps in which d rises to 63 % of its value; 0 for none."""

    def __post_init__(self) -> None:
        check(0 <= self.start < 1, f"start must be at least 0 and below 1, got {self.start:g}")
        check(0 <= self.decay < 1, f"decay must be at least 0 and below 1, got {self.decay:g}")
        check_owners(self, {"start": ("swa",), "rate": ("swa",), "decay": ("ema",), "ramp": ("ema",)})

    @property
    def is_on(self) -> bool:
        return self.name != NONE

    def first_epoch(self, num_epochs: int) -> int:
        """Return the number of epochs before the first whose weights are averaged."""
        return min(round(self.start * num_epochs), num_epochs - 1) if self.name == "swa" else 0

    def hold(self, num_epochs: int) -> dict[str, Any]:
        """Return the fields of the schedule that differ in its training: none without a rate of its own."""
        return {"hold_from": max(self.first_epoch(num_epochs), 1), "hold_rate": self.rate} if self.rate else {}


@dataclass(frozen=True)
class MixingConfig:
    """Training images that are mixtures of two, with both labels, in the shares λ and 1−λ; λ ~ Beta(α, α) per batch.

    mixup: λ·x + (1−λ)·x′. cutmix: a box of x′, of the share 1−λ, in the place of that of x. regmixup: the batch stays,
    and plain cross-entropy of its mixup counts as much as whatever loss the method has.
    """

    name: Literal["none", "mixup", "cutmix", "regmixup"] = later("none")
    alpha: Annotated[float, Within(0, 10**6)] = later(0.0)
    """0: as published, 0.3 for mixup, 1 for cutmix, 10 for regmixup (20 on CIFAR-10)."""
    weight: Weight = later(1.0)
    """regmixup: of the second term."""
    reduction: Literal["mean", "sum"] = later("mean")
    """regmixup: half of the sum of both terms, as the released code has it, or their sum, as the paper writes it. The
    sum is like twice the learning rate, at which some tasks learn nothing."""

    def __post_init__(self) -> None:
        check_owners(self, {"alpha": (*PUBLISHED_ALPHA,), "weight": ("regmixup",), "reduction": ("regmixup",)})

    @property
    def is_on(self) -> bool:
        return self.name != NONE

    @property
    def used_alpha(self) -> float:
        return self.alpha or PUBLISHED_ALPHA[self.name]


PUBLISHED_ALPHA = {"mixup": 0.3, "cutmix": 1.0, "regmixup": 10.0}
PUBLISHED_RHO = {"sam": 0.05, "f-sam": 0.2, "asam": 2.0}


def check_owners(config: Any, owners: Mapping[str, tuple[str, ...]], by: str = "name") -> None:
    """Raise a ValueError where a field is set that the chosen kind, the value of the field `by`, does not read."""
    defaults = {each.name: each.default for each in fields(config)}
    for field, kinds in owners.items():
        idle = getattr(config, by) not in kinds
        check(
            not idle or getattr(config, field) == defaults[field],
            f"{field} belongs to {by} = {' or '.join(kinds)}, not to {getattr(config, by)}",
        )
