"""Weighted sums of pixels in whole numbers, so that no order of adding changes a bit."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.tables import ONE, Table, placed, rounded_bytes, whole

EDGE, REFLECT, MIRROR = "edge", "symmetric", "reflect"
"""What lies beyond the border, as numpy.pad calls it: aaa|abc, cba|abc, dcb|abc."""
LANE = 21
"""Bits of a channel where those of a pixel are packed: 8 for the value and 13 for weights."""
WEIGHT_BITS = LANE - 8


def smooth(numbers: Tensor, sigma: float, truncate: float, border: str) -> Tensor:
    """Return (…, H, W) after a Gaussian filter: whole numbers times 2^−32, which floats of 64 bits hold exactly."""
    height, width = numbers.shape[-2:]
    rows = placed(gaussian_matrix, numbers.device, height, sigma, truncate, border)
    columns = placed(gaussian_matrix, numbers.device, width, sigma, truncate, border)
    return rows @ (numbers.to(torch.float64) @ columns.mT)


def gaussian_matrix(length: int, sigma: float, truncate: float, border: str) -> NDArray[np.float64]:
    """Return the matrix (length, length) that filters a column of pixels, in whole numbers times 2^−16."""
    reach = int(truncate * sigma + 0.5)
    weights, source = whole(bell_curve(reach, sigma)), beyond_border(length, reach, border)
    matrix = np.zeros((length, length))
    for row in range(length):
        np.add.at(matrix[row], source[row : row + 2 * reach + 1], weights)
    return matrix / ONE


def bell_curve(reach: int, sigma: float) -> NDArray[np.float64]:
    """Return a Gaussian at −reach, …, reach, not yet normalised."""
    return np.exp(-0.5 * (np.arange(-reach, reach + 1) / max(sigma, 1e-9)) ** 2)


def beyond_border(length: int, reach: int, border: str) -> NDArray[np.int64]:
    """Return which pixel stands at −reach, …, length − 1 + reach."""
    return np.pad(np.arange(length), reach, mode=border)  # type: ignore[call-overload,no-any-return]


def widened(images: Tensor, reach: int, border: str) -> Tensor:
    """Return images (…, H, W) with `reach` more pixels on each side."""
    rows = placed(beyond_border, images.device, images.shape[-2], reach, border)
    columns = placed(beyond_border, images.device, images.shape[-1], reach, border)
    return images.index_select(-2, rows).index_select(-1, columns)


def correlate(images: Tensor, weights: Table, border: str) -> Tensor:
    """Return images after a small filter of whole weights (side, side), whose sum stands for 1."""
    height, width = images.shape[2:]
    wide = widened(images, len(weights) // 2, border).to(torch.int32)
    total = torch.zeros_like(images, dtype=torch.int32)
    for (row, column), weight in np.ndenumerate(weights):
        if weight:
            total.add_(wide[:, :, row : row + height, column : column + width], alpha=int(weight))
    return rounded_bytes(total)


def packed(images: Tensor) -> Tensor:
    """Return (n, H, W) numbers that hold all channels of a pixel, so that they are gathered and weighted at once."""
    channels = images.to(torch.int64).unbind(1)
    return torch.stack([values << (LANE * place) for place, values in enumerate(channels)]).sum(0)


def unpacked(pixels: Tensor, channels: int) -> Tensor:
    """Return images (n, channels, H, W) from packed sums whose weights add up to 2^13."""
    sums = [(pixels >> (LANE * place)) & ((1 << LANE) - 1) for place in range(channels)]
    return rounded_bytes(torch.stack(sums, 1), WEIGHT_BITS)
