"""ConfidNet: a second network learns the probability that the frozen classifier gives to the true class."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from benchmark.interface import Batch, Epochs, Positive, Progress, Step, Within
from methods._probabilities import label_log_probability
from methods._second_stage import SecondStage


def true_class_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """Return TCP = p_y of the frozen network, a constant of the loss."""
    return label_log_probability(logits.detach(), labels).exp()


class ConfidNet(SecondStage):
    """The published last part, fine-tuning a copy of the encoder at a tiny rate, is left out.

    Where the network is right on nearly all training images, TCP is hardly more than its largest probability there:
    `images = "validation"` then learns from images that the network has not seen.
    """

    title = "ConfidNet: a second network learns the probability of the true class (without fine-tuning the encoder)"
    reference = "Corbière et al., NeurIPS 2019"
    labels = {"ConfidNet": {}}

    @dataclass(frozen=True)
    class Config:
        epochs: Epochs = 500
        lr: Positive = 1e-4
        images: Literal["train", "validation"] = "train"
        hidden: Annotated[int, Within(1, 65_536, "its weights fit into no memory")] = 400
        layers: Annotated[int, Within(1, 100)] = 4

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        with torch.no_grad():
            logits, features = self.network(batch.images)
        target = true_class_probability(logits, batch.labels)
        confidence = torch.sigmoid(-self.doubt(features))
        loss = mse_loss(confidence, target)
        return Step(loss, logs={"target_mean": target.mean(), "confidence_mean": confidence.detach().mean()})


METHOD = ConfidNet
