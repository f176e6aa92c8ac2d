"""Measure the mean and std of images exactly, and describe how images are prepared for a network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmark.config.recipe import augmentation
from benchmark.config.task import TaskConfig
from benchmark.config.training import AugmentConfig
from benchmark.data.images import Loaded

DIGITS = 4
"""Measured values are rounded to these digits, so that the values shown are the values used."""


def channel_sums(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return (3, C): number, sum and sum of squares of the pixels of each channel of images (N, C, H, W)."""
    total = images.sum(axis=(0, 2, 3), dtype=np.int64)
    squares = np.square(images, dtype=np.uint16).sum(axis=(0, 2, 3), dtype=np.int64)
    return np.stack([np.full_like(total, images[:, 0].size), total, squares])


def mean_and_std(sums: NDArray[np.int64]) -> dict[str, list[float]]:
    """Return mean E[x] and std √(E[x²] − E[x]²) by channel, of pixels from 0 to 1; std is 1 where all are equal."""
    rows: list[list[int]] = sums.T.tolist()
    mean = [round(total / (255 * count), DIGITS) for count, total, _ in rows]
    std = [round((count * squares - total**2) ** 0.5 / (255 * count), DIGITS) or 1.0 for count, total, squares in rows]
    return {"mean": mean, "std": std}


def preprocessing(task: TaskConfig, loaded: Loaded | None) -> str:
    """Describe in one line how a user's own images are prepared; empty for other sets, whose task file says it all."""
    if not task.data.is_own:
        return ""
    if task.data.mean:
        scaled = f"{numbers(task.data.mean, task.data.std)} (from the task file)"
    elif loaded is None:
        scaled = "mean and std of the training images, measured when they are cached"
    else:
        scaled = f"{numbers(loaded.mean, loaded.std)} (measured from the training images)"
    hint = " ([augment] names some)" if task.augment == AugmentConfig() else ""
    return f"own images: {scaled}; augmentation {augmentation(task)}{hint}"


def numbers(mean: Sequence[float], std: Sequence[float]) -> str:
    return "mean {}, std {}".format(*(" ".join(f"{value:g}" for value in each) for each in (mean, std)))
