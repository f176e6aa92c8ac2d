"""Noise: each value of each channel has a draw of its own."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri, pdtr
from torch import Tensor

from benchmark.data.corruptions.draws import LEVELS, Draws
from benchmark.data.corruptions.tables import ONE, as_bytes, looked_up, placed, rounded_bytes


def gaussian_noise(images: Tensor, draws: Draws, std: float) -> Tensor:
    """x + N(0, std)."""
    noise = looked_up(placed(bell, images.device, 255 * std), draw_each(images, draws))
    return as_bytes(images.to(torch.int16) + noise)


def shot_noise(images: Tensor, draws: Draws, photons: float) -> Tensor:
    """Poisson(x·c)/c, where c photons make a pixel white."""
    index = images.to(torch.int32) * LEVELS + draw_each(images, draws)
    return looked_up(placed(photon_levels, images.device, photons), index)


def impulse_noise(images: Tensor, draws: Draws, share: float) -> Tensor:
    """Salt and pepper: half of the share is white, half is black."""
    numbers, half = draw_each(images, draws), round(share / 2 * LEVELS)
    return images.masked_fill(numbers < half, 0).masked_fill(numbers >= LEVELS - half, 255)


def speckle_noise(images: Tensor, draws: Draws, std: float) -> Tensor:
    """x + x·N(0, std)."""
    factors = placed(speckles, images.device, std)
    return rounded_bytes(images.to(torch.int32) * looked_up(factors, draw_each(images, draws)))


def draw_each(images: Tensor, draws: Draws) -> Tensor:
    return draws.numbers(images[0].numel()).view(images.shape)


def normal() -> NDArray[np.float64]:
    """Return the standard normal number that each draw stands for."""
    quantiles: NDArray[np.float64] = ndtri((np.arange(LEVELS) + 0.5) / LEVELS)
    return quantiles


def bell(std: float) -> NDArray[np.int16]:
    """Return the whole number that each draw adds to a grey level."""
    return np.rint(std * normal()).astype(np.int16)


def speckles(std: float) -> NDArray[np.int32]:
    return np.rint(ONE * (1 + std * normal())).astype(np.int32)


def photon_levels(photons: float) -> NDArray[np.uint8]:
    """Return the new grey level for each old one (256) and each draw (65536), one row after the other."""
    counts = np.arange(int(photons + 10 * photons**0.5 + 20))
    cumulative = np.rint(LEVELS * pdtr(counts, np.arange(256)[:, None] / 255 * photons)).astype(np.int64)
    cumulative[:, -1] = LEVELS
    levels = np.rint(np.minimum(255 * counts / photons, 255)).astype(np.uint8)
    return np.repeat(np.tile(levels, 256), np.diff(cumulative, prepend=0).reshape(-1))
