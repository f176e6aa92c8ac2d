"""Fog: a cloud of its own for each image."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.draws import Draws
from benchmark.data.corruptions.tables import BITS, HALF, ONE, looked_up, placed, rounded_bytes

WOBBLE = 1 << 40
"""How far a draw moves the first points of a cloud."""
FINE = 5
"""Bits of a grey level below 1."""


def fog(images: Tensor, draws: Draws, thickness: float, decay: float) -> Tensor:
    """(x + c·cloud)·max/(max + c), with the largest value of the image as `max`: it stays the largest possible."""
    height, width = images.shape[2:]
    size = 1 << (max(height, width, 2) - 1).bit_length()
    cloud = plasma(draws.centred(size * size).view(-1, size, size).to(torch.int64), decay)[:, None, :height, :width]
    added = (cloud * round(255 * thickness * 2**FINE) + HALF) >> BITS
    largest = images.amax((1, 2, 3), keepdim=True).to(torch.int32)
    share = looked_up(placed(shares, images.device, thickness), largest)
    return rounded_bytes((images.to(torch.int32) * 2**FINE + added.to(torch.int32)) * share, BITS + FINE)


def shares(thickness: float) -> NDArray[np.int32]:
    """Return max/(max + c) for each largest grey level."""
    largest = np.arange(256)
    return np.rint(ONE * largest / (largest + 255 * thickness)).astype(np.int32)


def plasma(numbers: Tensor, decay: float) -> Tensor:
    """Return clouds (n, size, size) between 0 and 1 by the diamond-square algorithm, on a grid whose ends meet.

    On ever finer grids each new point is the mean of four neighbours, moved by the number that was drawn for it times
    the amplitude of the grid, which falls by decay².
    """
    cloud, size = torch.zeros_like(numbers), numbers.shape[1]
    for level in range(size.bit_length() - 1):
        fill_grid(cloud, numbers, size >> level, round(WOBBLE / decay ** (2 * level)))
    low, high = cloud.amin((1, 2), keepdim=True), cloud.amax((1, 2), keepdim=True)
    return torch.div(cloud - low, ((high - low) >> BITS).clamp(min=1), rounding_mode="floor")


def fill_grid(cloud: Tensor, numbers: Tensor, step: int, amplitude: int) -> None:
    """Fill the middles of squares whose corners are `step` apart, then those of the diamonds between."""
    on, off = slice(None, None, step), slice(step // 2, None, step)
    corners = cloud[:, on, on]
    pairs = corners + corners.roll(-1, 1)
    centres = ((pairs + pairs.roll(-1, 2)) >> 2) + numbers[:, off, off] * amplitude
    cloud[:, off, off] = centres
    across = corners + corners.roll(-1, 2) + centres + centres.roll(1, 1)
    upright = corners + corners.roll(-1, 1) + centres + centres.roll(1, 2)
    cloud[:, on, off] = (across >> 2) + numbers[:, on, off] * amplitude
    cloud[:, off, on] = (upright >> 2) + numbers[:, off, on] * amplitude
