"""Focal loss, and "Adaptive Focal": the same with a gamma that depends on the sample."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from benchmark.interface import Batch, Method, Progress, Step, Task, Within, accuracy
from methods._probabilities import label_log_probability, other_log_probability


def focal_loss(logits: Tensor, labels: Tensor, gamma: Tensor) -> Tensor:
    """Return −(1−p_y)^γ ln p_y per sample. At p_y = 1 a plain power with γ < 1 has no gradient; e^{γ ln(1−p_y)} has."""
    return -torch.exp(gamma * other_log_probability(logits, labels)) * label_log_probability(logits, labels)


def fixed(p_label: Tensor, gamma: float) -> Tensor:
    return torch.full_like(p_label, gamma)


def flsd53(p_label: Tensor, gamma: float) -> Tensor:
    """Return γ = 5 where p_y < 0.2, else 3, whatever the configured gamma: both numbers are part of the rule."""
    return torch.where(p_label < 0.2, torch.full_like(p_label, 5), torch.full_like(p_label, 3))


RULES = {"fixed": fixed, "flsd53": flsd53}


class Focal(Method):
    """The CCL-SC table's "Adaptive Focal" is taken to be FLSD-53, not AdaFocal (which is `adafocal.py`): the table's
    related methods are those of one public code base, where FLSD-53 bears that name, and the row nearly equals Focal's.

    Mean reduction and no gradient clipping, as everything here; the public recipes sum the loss and clip at norm 2.
    """

    title = "focal loss, with a fixed gamma or one that depends on the sample (FLSD-53)"
    reference = "Lin et al., ICCV 2017; Mukhoti et al., NeurIPS 2020"
    labels = {"Focal": {}, "Adaptive Focal": {"rule": "flsd53"}}
    takes_mixed = True

    @dataclass(frozen=True)
    class Config:
        gamma: Annotated[float, Within(0, 1000, "every loss would be zero")] = 3.0
        """Of the fixed rule; 0 is cross-entropy."""
        rule: Literal["fixed", "flsd53"] = "fixed"

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.rule = RULES[config.rule]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        loss = batch.mean_loss(lambda labels: self.loss(logits, labels))
        p_label = label_probability(logits, batch.labels)
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), "p_label": p_label.mean()})

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return focal_loss(logits, labels, self.rule(label_probability(logits, labels), self.config.gamma)).mean()


def label_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """Return p_y, a constant of the loss."""
    return label_log_probability(logits.detach(), labels).exp()


METHOD = Focal
