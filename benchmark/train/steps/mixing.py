"""Mix the images of a batch in pairs: mixup, cutmix, regmixup. What is drawn comes from a stream of its own."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import log_softmax, nll_loss

from benchmark.config.ingredients import MixingConfig
from benchmark.data import streams
from benchmark.data.transfer import upload
from benchmark.interface import Batch, Method, Progress, Step

Box = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True)
class Mixture:
    """How the images of a batch are mixed."""

    share: float
    """λ, that of the image itself."""
    partners: NDArray[np.int64]
    """Which image of the batch each one is mixed with."""
    box: Box | None = None
    """cutmix: what comes from the partner."""


def draw_mixture(config: MixingConfig, count: int, size: tuple[int, int], seed: int, epoch: int, step: int) -> Mixture:
    """Draw λ ~ Beta(α, α) once per batch, a partner for each image and, for cutmix, a box."""
    random = np.random.Generator(np.random.PCG64(streams.stream_seed(seed, "mixing", epoch, step)))
    share, partners = float(random.beta(config.used_alpha, config.used_alpha)), random.permutation(count)
    if config.name != "cutmix":
        return Mixture(share, partners)
    box = draw_box(share, size, random)
    area = (box[2] - box[0]) * (box[3] - box[1])
    return Mixture(1 - area / (size[0] * size[1]), partners, box)  # the labels follow what is left of the box


def draw_box(share: float, size: tuple[int, int], random: np.random.Generator) -> Box:
    """Draw a box of the area 1 − λ around a random pixel, cut off at the border."""
    height, width = (round(side * math.sqrt(1 - share)) for side in size)
    row, column = int(random.integers(size[0])), int(random.integers(size[1]))
    top, left = row - height // 2, column - width // 2
    return max(top, 0), max(left, 0), min(top + height, size[0]), min(left + width, size[1])


def mix_images(images: Tensor, others: Tensor, mixture: Mixture) -> Tensor:
    """Return λ·x + (1−λ)·x′, or x with a box of x′."""
    if mixture.box is None:
        return torch.lerp(others, images, mixture.share)
    top, left, bottom, right = mixture.box
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
    return mixed


def mix(batch: Batch, mixture: Mixture) -> Batch:
    """Return a batch of mixed images, with both labels of each."""
    partners = upload(mixture.partners, batch.labels.device)
    views = tuple(mix_images(view, view.index_select(0, partners), mixture) for view in batch.views)
    return replace(batch, views=views, partners=batch.labels.index_select(0, partners), share=mixture.share)


def prepared(batch: Batch, config: MixingConfig, seed: int, epoch: int, step: int) -> Batch:
    """Return what a step trains on: the mixed batch or, for regmixup, the batch itself with a mixed one beside it."""
    height, width = batch.images.shape[-2:]
    mixture = draw_mixture(config, len(batch.labels), (height, width), seed, epoch, step)
    if config.name != "regmixup":
        return mix(batch, mixture)
    return replace(batch, beside=mix(replace(batch, views=batch.views[:1]), mixture))


def rows_of(batch: Batch, rows: slice) -> Batch:
    """Return some rows of a batch, and of the one beside it."""
    return replace(
        batch,
        views=tuple(view[rows] for view in batch.views),
        labels=batch.labels[rows],
        indices=batch.indices[rows],
        partners=None if batch.partners is None else batch.partners[rows],
        beside=None if batch.beside is None else rows_of(batch.beside, rows),
        outliers=None if batch.outliers is None else batch.outliers[rows],
    )


def training_step(method: Method, batch: Batch, progress: Progress, config: MixingConfig) -> Step:
    """Return the step of a method, with the plain cross-entropy of the mixed batch beside its own, where there is one.

    regmixup: half of L + w·CE_mix, or all of it. The two batches pass apart, as the method's loss sees its own alone.
    """
    step = method.training_step(batch, progress)
    if batch.beside is None:
        return step
    logits = method.network(batch.beside.images)[0][:, : method.task.num_classes]
    log_p = log_softmax(logits, 1)
    mixed = batch.beside.mean_loss(lambda labels: nll_loss(log_p, labels))
    loss = step.loss + config.weight * mixed
    loss = loss / 2 if config.reduction == "mean" else loss
    return replace(step, loss=loss, logs={**step.logs, "mixed": mixed.detach()})
