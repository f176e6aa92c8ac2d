"""OpenMix: outliers have a class of their own, and mixtures of images with them belong to both."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Positive, Progress, Step, Weight, accuracy
from methods._probabilities import at_label


def mixed_cross_entropy(outputs: Tensor, labels: Tensor, share: float) -> Tensor:
    """Return −λ·log p_y − (1−λ)·log p_{k+1} per sample, with p over all k+1 outputs."""
    log_p = torch.log_softmax(outputs, 1)
    return -share * at_label(log_p, labels) - (1 - share) * log_p[:, -1]


class OpenMix(Method):
    """Images and mixtures pass as one batch, so BatchNorm sees both, as in the public code. Where that code cuts a
    batch to the shorter of its two loaders, here every image has an outlier."""

    title = "a class for outliers, and mixtures of images with them; needs extra data (data.outliers)"
    reference = "Zhu et al., CVPR 2023"
    labels = {"OpenMix": {}}
    extra_outputs = 1
    needs_outliers = True

    @dataclass(frozen=True)
    class Config:
        weight: Weight = 1.0
        """gamma, of the mixtures."""
        alpha: Positive = 10.0
        """Of Beta(alpha, alpha), from which the share of the image in a mixture is drawn, once per batch."""

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        if batch.outliers is None:
            raise TypeError("the batch has no outliers")
        share = batch.draw_beta(self.config.alpha)
        mixed = torch.lerp(batch.outliers, batch.images, share)
        outputs, mixed_outputs = self.network(torch.cat([batch.images, mixed]))[0].chunk(2)
        mixed_loss = mixed_cross_entropy(mixed_outputs, batch.labels, share).mean()
        loss = cross_entropy(outputs, batch.labels) + self.config.weight * mixed_loss
        logs = {"accuracy": accuracy(outputs[:, :-1], batch.labels), "mixed": mixed_loss.detach()}
        return Step(loss, logs=logs)


METHOD = OpenMix
