"""Blurs that stand still: Gaussian, out of focus, through frosted glass."""

import math
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.constants import scale
from benchmark.data.corruptions.draws import Draws
from benchmark.data.corruptions.filters import EDGE, MIRROR, bell_curve, correlate, smooth
from benchmark.data.corruptions.tables import whole

TRUNCATE = 4.0


def gaussian_blur(images: Tensor, sigma: float) -> Tensor:
    return smooth(images, sigma * scale(images), TRUNCATE, EDGE).to(torch.uint8)


def defocus_blur(images: Tensor, radius: float, sigma: float) -> Tensor:
    """A disk, its edge made soft by a Gaussian that reaches one pixel (more in larger images)."""
    larger = scale(images)
    return correlate(images, soft_disk(radius * larger, sigma * larger, round(larger)), MIRROR)


def soft_disk(radius: float, sigma: float, reach: int) -> NDArray[np.int64]:
    size = int(radius) + reach
    row, column = np.ogrid[-size : size + 1, -size : size + 1]
    disk = (row**2 + column**2 <= radius**2).astype(np.float64)
    curve = bell_curve(reach, sigma) / bell_curve(reach, sigma).sum()
    for axis in (0, 1):
        disk = np.apply_along_axis(np.convolve, axis, disk, curve, mode="same")
    return whole(disk)


def glass_blur(images: Tensor, draws: Draws, sigma: float, times: float) -> Tensor:
    """Blur, shuffle the pixels by small steps, blur again."""
    images = gaussian_blur(images, sigma)
    count, channels, height, width = images.shape
    step = round(scale(images))
    moves = (draws.numbers(2 * int(times) * height * width) * (step + 1)) >> 16
    for move in moves.view(count, int(times), 2, height, width).unbind(1):
        source = shuffled(move[:, 0], move[:, 1], step).view(count, 1, -1).expand(count, channels, -1)
        images = images.reshape(count, channels, -1).gather(2, source).view(images.shape)
    return gaussian_blur(images, sigma)


def shuffled(up: Tensor, left: Tensor, step: int) -> Tensor:
    """Return where each pixel comes from (n, H, W), as its place in the image, after a row of swaps.

    From the last pixel to the first, each swaps with the one `up` rows above and `left` columns to the left: both are
    whole numbers from 0 to `step`. The first rows and columns do not swap by themselves. A pixel changes no more after
    its turn, and so gets what its partner holds then: the partner's own value, or what the last to swap with the
    partner held at its turn. `held` is a chain of such references, which doubling follows to its end.
    """
    count, height, width = up.shape
    place = torch.arange(height * width, device=up.device).view(height, width)
    moves = (up * (step + 1) + left).masked_fill((place // width <= step) | (place % width <= step), 0)
    held = (place + height * width).repeat(count, 1, 1)
    gets = place.repeat(count, 1, 1)
    for rows, columns in reversed([*product(range(step + 1), repeat=2)][1:]):
        swaps = moves[:, rows:, columns:] == rows * (step + 1) + columns
        partner = held[:, : height - rows, : width - columns]
        gets[:, rows:, columns:] = torch.where(swaps, partner, gets[:, rows:, columns:])
        partner.copy_(torch.where(swaps, place[rows:, columns:], partner))
    ends = followed(torch.cat([held, place + height * width + torch.zeros_like(held)], 1).view(count, -1))
    return ends.gather(1, gets.view(count, -1)) - height * width


def followed(chain: Tensor) -> Tensor:
    """Return the end of the chain from each place (n, places): where a place refers to itself."""
    for _ in range(math.ceil(math.log2(chain.shape[1]))):
        chain = chain.gather(1, chain)
    return chain
