"""Measure the mean and std of images exactly, and describe how images are prepared for a network."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.units import counted
from benchmark.config.recipe import augmentation
from benchmark.config.task import TaskConfig
from benchmark.config.training import AugmentConfig
from benchmark.data.images import Loaded

DIGITS = 4
"""Measured values are rounded to these digits, so that the values shown are the values used."""
SIGNIFICANT = 9
"""The same for floats, which can have any size: so many significant digits as single precision can have."""
MOST_LISTED = 3
"""Up to so many channels, mean and std of each are shown."""


def channel_sums(images: NDArray[Any]) -> NDArray[Any]:
    """Return (3, C): number, sum and sum of squares of the pixels of each channel of images (N, C, H, W)."""
    exact, widened = (np.int64, np.uint16) if images.dtype == np.uint8 else (np.float64, np.float64)
    total = images.sum(axis=(0, 2, 3), dtype=exact)
    squares = np.square(images, dtype=widened).sum(axis=(0, 2, 3), dtype=exact)
    return np.stack([np.full_like(total, images[:, 0].size), total, squares])


def mean_and_std(sums: NDArray[Any]) -> dict[str, list[float]]:
    """Return mean E[x] and std √(E[x²] − E[x]²) by channel, of pixels from 0 to 1; std is 1 where all are equal."""
    if sums.dtype.kind == "f":
        return float_mean_and_std(sums)
    rows: list[list[int]] = sums.T.tolist()
    mean = [round(total / (255 * count), DIGITS) for count, total, _ in rows]
    std = [round((count * squares - total**2) ** 0.5 / (255 * count), DIGITS) or 1.0 for count, total, squares in rows]
    return {"mean": mean, "std": std}


def float_mean_and_std(sums: NDArray[np.float64]) -> dict[str, list[float]]:
    """Do the same for floats, which are not divided by 255."""
    mean, squares = sums[1:] / sums[0]
    std = np.sqrt(np.maximum(squares - mean**2, 0))
    rounded = [[float(f"{value:.{SIGNIFICANT}g}") for value in each] for each in (mean.tolist(), std.tolist())]
    return {"mean": rounded[0], "std": [value or 1.0 for value in rounded[1]]}


def preprocessing(task: TaskConfig, loaded: Loaded | None) -> str:
    """Describe in one line how a user's own data are prepared; empty for other sets, whose task file says it all."""
    if not task.data.is_own:
        return ""
    what = "vectors" if task.data.source == "vectors" else "images"
    if task.data.mean:
        scaled = f"{numbers(task.data.mean, task.data.std)} ({named_by(task)})"
    elif loaded is None:
        scaled = f"mean and std of the training {what}, measured when they are cached"
    else:
        scaled = f"{numbers(loaded.mean, loaded.std)} (measured from the training {what})"
    hint = " ([augment] names some)" if task.augment == AugmentConfig() else ""
    return f"own {what}: {scaled}; augmentation {augmentation(task)}{hint}"


def named_by(task: TaskConfig) -> str:
    """Return where the mean and std of a task are from, as far as it says so."""
    return "of the network's weights, or from the task file" if task.network.weights else "from the task file"


def numbers(mean: Sequence[float], std: Sequence[float]) -> str:
    if len(mean) > MOST_LISTED:
        return f"mean and std of {counted(len(mean), 'column')}"
    return "mean {}, std {}".format(*(" ".join(f"{value:g}" for value in each) for each in (mean, std)))
