"""CCL-SC: cross-entropy plus a contrastive loss that pulls towards right and pushes from wrong features of a class.

Its ablations differ in the switches of `ContrastConfig` alone. "frozen" is the paper's Algorithm 1.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, Task, Validation, accuracy
from methods._contrastive import ContrastConfig
from methods._memory import ContrastiveMemory


class ConfidenceAwareContrast(Method):
    title = "confidence-aware contrastive learning with two feature queues and a momentum encoder"
    reference = "Wu et al., ICML 2024"
    labels = {
        "CCL-SC": {},
        "CCL-SC unweighted": {"weighting": "none"},
        "CCL-SC2": {"negatives": "sc2"},
        "CCL-SC3": {"negatives": "sc3"},
        "CCL-SC+SupCon": {"negatives": "supcon"},
        "CCL-SC frozen": {"queue_policy": "freeze", "momentum_order": "before", "full_at": "more"},
        "CCL-SC released": {"loss_form": "released", "queue_policy": "freeze", "momentum_cadence": "epoch"},
    }
    warmup = "cross_entropy"

    class Config(ContrastConfig):
        pass

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.memory = ContrastiveMemory(network, task, config)

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, features = self.network(batch.images)
        contrast, logs = self.memory.loss(logits, features, batch.labels, progress)
        loss = cross_entropy(logits, batch.labels) + contrast
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), **logs})

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        self.memory.after_step(batch, self.network, progress)

    def after_epoch(self, progress: Progress, validation: Validation | None) -> None:
        self.memory.rest()

    def health(self) -> Mapping[str, Tensor]:
        return self.memory.health(self.network)

    def notes(self) -> list[str]:
        return self.memory.notes()


METHOD = ConfidenceAwareContrast
