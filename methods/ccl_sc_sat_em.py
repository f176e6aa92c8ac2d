"""CCL-SC+SAT+EM: the contrastive loss of CCL-SC beside self-adaptive training with entropy minimisation."""

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Progress, Step, Task, Weight, check
from methods._contrastive import ContrastConfig
from methods.ccl_sc import ConfidenceAwareContrast
from methods.self_adaptive import SelfAdaptive


def replaced(adaptive: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    """Return SAT+EM, which takes the place of cross-entropy (as in the paper)."""
    return adaptive


def added(adaptive: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    """Return cross-entropy over all K+1 outputs plus SAT+EM (as in the public code)."""
    return cross_entropy(outputs, labels) + adaptive


COMBINATIONS = {"replace": replaced, "add": added}


class ContrastWithSelfAdaption(ConfidenceAwareContrast, SelfAdaptive):
    title = "CCL-SC with SAT+EM in the place of cross-entropy"
    reference = "Wu et al., ICML 2024"
    labels = {"CCL-SC+SAT+EM": {}}
    own_scores = ("SR", "abstention")
    """SR first, as it ranks CCL-SC; the paper does not say which score ranks the combination."""

    @dataclass(frozen=True)
    class Config(ContrastConfig):
        target_momentum: float = 0.9
        entropy_weight: Weight = 0.001
        """beta of EM."""
        entropy_form: Literal["entropy", "released"] = "entropy"
        combination: Literal["replace", "add"] = "replace"
        """The code has add, with random queues, sr_outputs weights and the released forms of both losses."""

        def __post_init__(self) -> None:
            super().__post_init__()
            check(0 <= self.target_momentum <= 1, f"target_momentum must lie in [0, 1], got {self.target_momentum}")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.combined = COMBINATIONS[config.combination]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        outputs, features = self.network(batch.images)
        adaptive = self.adapt(outputs, batch)
        contrast, logs = self.memory.loss(outputs, features, batch.labels, progress)
        loss = self.combined(adaptive.loss, outputs, batch.labels) + contrast
        return Step(loss, adaptive.carry, {**adaptive.logs, **logs})

    def after_step(self, batch: Batch, carry: Tensor, progress: Progress) -> None:
        SelfAdaptive.after_step(self, batch, carry, progress)
        ConfidenceAwareContrast.after_step(self, batch, carry, progress)


METHOD = ContrastWithSelfAdaption
