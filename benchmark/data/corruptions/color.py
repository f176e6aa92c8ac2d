"""Changes of colour: each pixel alone, but for the mean of its image."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.tables import BITS, ONE, looked_up, placed, rounded_bytes


def brightness(images: Tensor, added: float) -> Tensor:
    """HSV value + c. With hue and saturation kept, all channels grow as their maximum V does: x·min(V + c, 1)/V."""
    factor, light = placed(growth, images.device, added)
    value = images.amax(1, keepdim=True).to(torch.int32)
    return rounded_bytes(images * looked_up(factor, value) + looked_up(light, value))


def growth(added: float) -> NDArray[np.int32]:
    """Return (2, 256): the factor of the channels of a pixel by its value V; and what a black pixel gets."""
    value = np.arange(256)
    brighter = np.minimum(value + 255 * added, 255)
    factor = np.where(value, brighter / np.maximum(value, 1), 0)
    table: NDArray[np.int32] = np.rint(ONE * np.stack([factor, np.where(value, 0, brighter)])).astype(np.int32)
    return table


def contrast(images: Tensor, kept: float) -> Tensor:
    """(x − mean)·c + mean, with a mean for each channel."""
    share, pixels = round(ONE * kept), images.shape[2] * images.shape[3]
    total = images.sum((2, 3), keepdim=True, dtype=torch.int64) * (ONE - share)
    mean = torch.div(total + pixels // 2, pixels, rounding_mode="floor")
    return rounded_bytes(images.to(torch.int32) * share + mean.to(torch.int32))


def saturate(images: Tensor, factor: float, added: float) -> Tensor:
    """HSV saturation·a + b. With hue and value V kept, the distances V − x grow as the saturation does.

    A pixel without colour has the hue of red. Grey images have no colours, and stay as they are.
    """
    if images.shape[1] == 1:
        return images.clone()
    colours = images.to(torch.int32)
    value = colours.amax(1, keepdim=True)
    span = value - colours.amin(1, keepdim=True)
    distance = value - colours
    distance[:, 1:] += span == 0
    ratios = placed(stretch, images.device, factor, added)
    return rounded_bytes((value << BITS) - distance * looked_up(ratios, value * 256 + span))


def stretch(factor: float, added: float) -> NDArray[np.int32]:
    """Return the factor of the distances to V, for each V (256) and largest distance (256): one row after the other."""
    value, span = np.arange(256)[:, None], np.arange(256)
    wanted = np.minimum(factor * span + added * value, value)
    return np.rint(ONE * wanted / np.maximum(span, 1)).astype(np.int32).reshape(-1)
