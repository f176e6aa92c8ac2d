"""A data set resident on the device: fixed splits, and batches that carry their indices."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark import rng
from benchmark.augment import augment, normalise
from benchmark.config import AugmentConfig, DataConfig
from benchmark.errors import UserError
from benchmark.interface import Batch
from benchmark.sources import Images, Loaded, describe, get_source


@lru_cache(maxsize=2)
def load(config: DataConfig, data_dir: Path, download: bool = True) -> Loaded:
    """The images of a task, checked, after its subsets are taken. Kept in memory for the next job of the process."""
    loaded = get_source(config.source).load(config, data_dir, download=download)
    if config.train_images or config.test_images:
        loaded = loaded.subset(config.train_images, config.test_images)
    if config.official_val and loaded.val is None:
        raise UserError(f"data.official_val: '{config.source}' has no validation split of its own; set data.val")
    channels, height, width = loaded.train.images.shape[1:]
    if config.image_size and (height, width) != (config.image_size, config.image_size):
        raise UserError(
            f"data.image_size = {config.image_size}, but '{config.source}' is {height}×{width}; set it to 0"
        )
    if len(config.mean) != channels:
        raise UserError(f"data.mean has {len(config.mean)} number(s), but '{config.source}' has {channels} channel(s)")
    highest = max(int(split.labels.max()) for split in (loaded.train, loaded.test))
    if highest >= describe(config).num_classes:
        raise UserError(f"'{config.source}' has a label {highest}, above its {describe(config).num_classes} classes")
    return loaded


@dataclass(frozen=True)
class Split:
    """Images and labels on the device."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """What a job trains, validates and tests on. The test labels are read only by the final evaluation."""

    train: Split
    val: Split | None
    test: Split
    mean: Tensor
    std: Tensor
    num_classes: int
    posterior: NDArray[np.float64] | None

    @property
    def shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self.train.images.shape
        return channels, height, width

    def num_batches(self, batch_size: int) -> int:
        return len(batch_bounds(len(self.train), batch_size))

    def batches(
        self, batch_size: int, seed: int, epoch: int, augmentation: AugmentConfig, num_views: int
    ) -> Iterator[Batch]:
        """The training batches of an epoch: order and augmentation depend on (seed, epoch) alone."""
        order = torch.randperm(len(self.train), generator=rng.generator(seed, "order", epoch))
        order = order.to(self.train.labels.device)
        for step, (start, end) in enumerate(batch_bounds(len(order), batch_size)):
            indices = order[start:end]
            images = self.train.images.index_select(0, indices)
            draws = rng.generator(seed, "augmentation", epoch, step)
            views = tuple(self.normalise(augment(images, augmentation, draws)) for _ in range(num_views))
            yield Batch(views, self.train.labels.index_select(0, indices), indices)

    def eval_batches(self, split: Split, batch_size: int) -> Iterator[Tensor]:
        """Every image of a split once, in order."""
        for images in torch.split(split.images, batch_size):
            yield self.normalise(images)

    def normalise(self, images: Tensor) -> Tensor:
        return normalise(images, self.mean, self.std)


def batch_bounds(count: int, batch_size: int) -> list[tuple[int, int]]:
    """Consecutive ranges; a last batch of one image, which BatchNorm refuses, joins the one before."""
    starts = list(range(0, count, batch_size))
    if len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=True))


def prepare(config: DataConfig, data_dir: Path, seed: int, device: torch.device) -> DataSet:
    """The data set of a job: validation is the set's own split, or a part of the training images drawn by the seed."""
    loaded = load(config, data_dir)
    chosen = torch.randperm(len(loaded.train.labels), generator=rng.generator(seed, "split")).numpy()
    num_val = round(config.val * len(chosen))
    train, val, test, posterior = (
        loaded.train.take(np.sort(chosen[num_val:])),
        loaded.val,
        loaded.test,
        loaded.posterior,
    )
    if num_val:
        val = loaded.train.take(np.sort(chosen[:num_val]))
    if config.test_holdout:
        shuffled = torch.randperm(len(test.labels), generator=rng.generator(seed, "hold-out")).numpy()
        tested = np.sort(shuffled[config.test_holdout :])
        test, posterior = test.take(tested), None if posterior is None else posterior[tested]
    return DataSet(
        train=on_device(train, device),
        val=None if val is None else on_device(val, device),
        test=on_device(test, device),
        mean=torch.tensor(config.mean, device=device),
        std=torch.tensor(config.std, device=device),
        num_classes=describe(config).num_classes,
        posterior=posterior,
    )


def on_device(images: Images, device: torch.device) -> Split:
    pixels = torch.from_numpy(np.ascontiguousarray(images.images))
    return Split(pixels.to(device), torch.from_numpy(images.labels).to(device))
