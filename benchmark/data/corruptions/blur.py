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
    return smooth(images, sigma * scale(images), TRUNCATE, EDGE).add_(0.5).to(torch.uint8)


def defocus_blur(images: Tensor, radius: float, sigma: float) -> Tensor:
    """Blur with a disk, whose edge is made soft by a Gaussian that reaches one pixel (more in larger images)."""
    larger = scale(images)
    return correlate(images, soft_disk(radius * larger, sigma * larger, round(larger)), MIRROR)


def soft_disk(radius: float, sigma: float, reach: int) -> NDArray[np.int64]:
    size = int(radius) + reach
    row, column = np.ogrid[-size : size + 1, -size : size + 1]
    disk = (row**2 + column**2 <= radius**2).astype(np.float64)
    curve = bell_curve(reach, sigma) / bell_curve(reach, sigma).sum()
    for axis in (0, 1):
        disk = np.apply_along_axis(np.convolve, axis, disk, curve, mode="same")
    return whole(disk.reshape(-1)).reshape(disk.shape)


def glass_blur(images: Tensor, draws: Draws, sigma: float, times: float) -> Tensor:
    """Blur, shuffle the pixels by small steps, blur again."""
    images = gaussian_blur(images, sigma)
    count, channels, height, width = images.shape
    step = round(scale(images))
    numbers = draws.numbers(int(times) * height * width).view(count, int(times), height, width)
    for moves in ((numbers * (step + 1) ** 2) >> 16).unbind(1):
        source = shuffled(moves, step)[:, None].expand(count, channels, -1)
        images = images.reshape(count, channels, -1).gather(2, source).view(images.shape)
    return gaussian_blur(images, sigma)


def shuffled(moves: Tensor, step: int) -> Tensor:
    """Return where each pixel comes from (n, pixels) after a row of swaps, from the last pixel to the first.

    Each asks a partner above it and to its left; `moves` (n, H, W) holds rows·(step + 1) + columns, both from 0 to
    `step`. The first rows and columns do not ask. A pixel does not change after its turn, and so gets what its partner
    holds then: the partner's own value, or what the last to ask the partner held at its turn. Such references form
    chains. Places from H·W on stand for the values at the start.
    """
    count, height, width = moves.shape
    place = torch.arange(height * width, device=moves.device, dtype=torch.int32).view(height, width)
    moves = moves.masked_fill((place < (step + 1) * width) | (place % width <= step), 0)
    held = (place + height * width).repeat(count, 1, 1)
    gets = place.repeat(count, 1, 1)
    for rows, columns in reversed([*product(range(step + 1), repeat=2)][1:]):
        swaps = moves[:, rows:, columns:] == rows * (step + 1) + columns
        asking, partner = gets[:, rows:, columns:], held[:, : height - rows, : width - columns]
        asking.copy_(torch.where(swaps, partner, asking))
        partner.copy_(torch.where(swaps, place[rows:, columns:], partner))
    start = ends(held.flatten(1).to(torch.int64), height + width)
    return start.gather(1, gets.flatten(1).to(torch.int64))


def ends(held: Tensor, longest: int) -> Tensor:
    """Return the value at the start to which each chain of references leads; values at the start follow the places.

    The steps of a chain double each time.
    """
    pixels = held.shape[1]
    chain = torch.cat([held, torch.arange(pixels, 2 * pixels, device=held.device).expand_as(held)], 1)
    for _ in range(math.ceil(math.log2(longest))):
        chain[:, :pixels] = chain.gather(1, chain[:, :pixels])
    return chain - pixels
