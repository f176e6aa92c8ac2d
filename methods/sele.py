"""SELE: an uncertainty for a frozen classifier, learnt by ranking its errors last."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, softplus

from benchmark.interface import Batch, Epochs, Positive, Progress, Step, Task, Within
from methods._probabilities import correctness
from methods._second_stage import SecondStage


def sele_proxy(uncertainty: Tensor, error: Tensor) -> Tensor:
    """Return (1/n²) Σ_i Σ_j ℓ_i ln(1 + e^{s_j − s_i}): an error should be less certain than whatever it meets."""
    pairs = softplus(uncertainty[None, :] - uncertainty[:, None])
    return (error[:, None] * pairs).mean()


def loss_regression(uncertainty: Tensor, error: Tensor) -> Tensor:
    """Return mean (s_i − ℓ_i)², the other form of the paper: the best s is the conditional risk."""
    return mse_loss(uncertainty, error)


FORMS = {"rank": sele_proxy, "regression": loss_regression}


class SelectiveLoss(SecondStage):
    title = "SELE: an uncertainty learnt by ranking the errors of a frozen network, on images it has not seen"
    reference = "Franc et al., JMLR 2023"
    labels = {"SELE": {}}
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        epochs: Epochs = 100
        lr: Positive = 1e-3
        images: Literal["train", "validation"] = "validation"
        form: Literal["rank", "regression"] = "rank"
        hidden: Annotated[int, Within(1, 65_536, "its weights fit into no memory")] = 128
        layers: Annotated[int, Within(1, 100)] = 1

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.form = FORMS[config.form]

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        with torch.no_grad():
            logits, features = self.network(batch.images)
        error = 1 - correctness(logits, batch.labels)
        return Step(self.form(self.doubt(features), error), logs={"error": error.mean()})


METHOD = SelectiveLoss
