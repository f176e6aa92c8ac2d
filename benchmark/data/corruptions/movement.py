"""Blurs of movement: across the image, and towards it."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron
from torch import Tensor

from benchmark.data.corruptions.constants import scale
from benchmark.data.corruptions.draws import LEVELS, Draws
from benchmark.data.corruptions.filters import EDGE, WEIGHT_BITS, bell_curve, packed, unpacked, widened
from benchmark.data.corruptions.tables import placed, rounded_bytes, whole

ANGLES = 1024


def motion_blur(images: Tensor, draws: Draws, radius: float, sigma: float) -> Tensor:
    """Half a Gaussian along a line, at an angle between −45° and 45°, as ImageMagick does."""
    weights = trail(radius * scale(images), sigma * scale(images))
    reach = len(weights) - 1
    angle = draws.numbers(1)[:, 0] // (LEVELS // ANGLES)
    rows, columns = placed(line_steps, images.device, len(weights)).index_select(1, angle)
    count, channels, height, width = images.shape
    pixels, row_step = packed(widened(images, reach, EDGE)).view(count, -1), width + 2 * reach
    place = torch.arange(height, device=images.device)[:, None] * row_step + torch.arange(width, device=images.device)
    total = torch.zeros(count, height * width, dtype=torch.int64, device=images.device)
    for step, weight in enumerate(weights):
        corner = (rows[:, step] + reach) * row_step + columns[:, step] + reach
        total.add_(pixels.gather(1, place.view(-1) + corner[:, None]), alpha=int(weight))
    return unpacked(total.view(count, height, width), channels)


def trail(radius: float, sigma: float) -> NDArray[np.int64]:
    """Return the weights of the pixels along the line, without the last ones that round to nothing."""
    length = 2 * math.ceil(radius) + 1
    return np.trim_zeros(whole(bell_curve(length - 1, sigma)[length - 1 :], WEIGHT_BITS))


def line_steps(length: int) -> NDArray[np.int64]:
    """Return the rows and columns (2, angles, length) of the pixels along a line, for each angle."""
    angles = np.deg2rad(90 * (np.arange(ANGLES) + 0.5) / ANGLES - 45)
    ways = np.stack([np.sin(angles), np.cos(angles)])[:, :, None] * np.arange(length)
    steps: NDArray[np.int64] = np.ceil(ways - 0.5).astype(np.int64)
    return steps


def zoom_blur(images: Tensor, limit: float) -> Tensor:
    """Return the mean of the image and of its zooms by 1, 1.01, … below a limit: each pixel is a sum of some others."""
    count, channels, height, width = images.shape
    sources, weights = placed(zoom_sums, images.device, height, width, limit)
    pixels = images.reshape(count * channels, -1).T.to(torch.int32, memory_format=torch.contiguous_format)
    total = torch.zeros_like(pixels)
    for source, weight in zip(sources, weights, strict=True):
        total.add_(pixels.index_select(0, source).mul_(weight[:, None]))
    return rounded_bytes(total).T.reshape(images.shape)


def zoom_sums(height: int, width: int, limit: float) -> NDArray[np.int32]:
    """Return (2, most sources of a pixel, pixels): the pixels that each is made of, and their weights."""
    total = csr_array(eye_array(height * width))
    for percent in range(100, round(100 * limit)):
        total += kron(zoom_matrix(height, percent), zoom_matrix(width, percent), format="csr")
    total.sum_duplicates()
    return padded_rows(total)


def zoom_matrix(length: int, percent: int) -> csr_array:
    """Return (length, length): how each pixel of the zoomed middle lies between two of the image."""
    crop = -(-100 * length // percent)
    size = round(crop * percent / 100)
    place = (np.arange(length) + (size - length) // 2) * (crop - 1) / max(size - 1, 1)
    first = np.minimum(place.astype(np.int64), max(crop - 2, 0))
    matrix = np.zeros((length, length))
    top, rows = (length - crop) // 2, np.arange(length)
    matrix[rows, top + first] = 1 - (place - first)
    matrix[rows, np.minimum(top + first + 1, length - 1)] += place - first
    return csr_array(matrix)


def padded_rows(matrix: csr_array) -> NDArray[np.int32]:
    """Return a sparse matrix as (2, most entries of a row, rows): columns and whole weights, with zeros at the end."""
    counts = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    entry = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
    table = np.zeros((2, counts.max(), len(counts)))
    table[0, entry, rows], table[1, entry, rows] = matrix.indices, matrix.data
    table[1] = whole(table[1])
    return table.astype(np.int32)
