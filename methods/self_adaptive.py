"""SAT, self-adaptive training with an abstention output, and SAT+EM, which adds entropy minimisation."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from benchmark.interface import Batch, Epochs, Progress, Step, Task, Weight, accuracy, check
from methods._abstention import AbstentionMethod, abstention_mass
from methods._probabilities import at_label


def updated_target(target: Tensor, class_logits: Tensor, labels: Tensor, momentum: float) -> Tensor:
    """Return the next target m·t + (1−m)·p_y with p the softmax over the K classes, detached.

    Only the label's entry of the soft target ever reaches the loss, so one number per sample is kept.
    """
    p_label = torch.softmax(class_logits.detach(), 1).gather(1, labels[:, None])[:, 0]
    return (momentum * target + (1 - momentum) * p_label).clamp(0, 1)


def sat_loss(outputs: Tensor, labels: Tensor, target: Tensor) -> Tensor:
    """Return −t log p_y − (1−t) log p_{k+1} per sample, p the softmax over all K+1 outputs."""
    log_p = torch.log_softmax(outputs, 1)
    return -target * at_label(log_p, labels) - (1 - target) * log_p[:, -1]


def entropy(class_logits: Tensor) -> Tensor:
    """Return H(p) = −Σ_j p_j log p_j per sample."""
    log_p = torch.log_softmax(class_logits, 1)
    return -(log_p.exp() * log_p).sum(1)


def released_entropy(class_logits: Tensor) -> Tensor:
    """Return −Σ_j p_j u_j, what the public code minimises: H(p) − logsumexp(u), unbounded below."""
    return -(torch.softmax(class_logits, 1) * class_logits).sum(1)


ENTROPY_FORMS = {"entropy": entropy, "released": released_entropy}


class SelfAdaptive(AbstentionMethod):
    title = "self-adaptive training with an abstention output; +EM minimises the entropy too"
    reference = "Huang et al., NeurIPS 2020; Feng et al., ICLR 2023"
    labels = {"SAT": {}, "SAT+EM": {"entropy_weight": 0.001}}
    warmup = "cross_entropy"
    target: Tensor

    @dataclass(frozen=True)
    class Config:
        warmup_epochs: Epochs = 60
        target_momentum: float = 0.9
        entropy_weight: Weight = 0.0
        """beta; 0 is SAT, anything else SAT+EM."""
        entropy_form: Literal["entropy", "released"] = "entropy"

        def __post_init__(self) -> None:
            check(0 <= self.target_momentum <= 1, f"target_momentum must lie in [0, 1], got {self.target_momentum}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.register_buffer("target", torch.ones(task.num_train))
        self.entropy = ENTROPY_FORMS[config.entropy_form]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        outputs, _ = self.network(batch.images)
        return self.adapt(outputs, batch)

    def adapt(self, outputs: Tensor, batch: Batch) -> Step:
        class_logits = outputs[:, :-1]
        old = self.target.index_select(0, batch.indices)
        target = updated_target(old, class_logits, batch.labels, self.config.target_momentum)
        loss = (
            sat_loss(outputs, batch.labels, target) + self.config.entropy_weight * self.entropy(class_logits)
        ).mean()
        logs = {
            "accuracy": accuracy(class_logits, batch.labels),
            "abstention_mass": abstention_mass(outputs),
            "target_mean": target.mean(),
        }
        return Step(loss, carry=target, logs=logs)

    def after_step(self, batch: Batch, carry: Tensor, progress: Progress) -> None:
        self.target.index_copy_(0, batch.indices, carry)


METHOD = SelfAdaptive
