"""Fewer pixels: the image is made smaller by means over boxes, and large again."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.tables import placed


def pixelate(images: Tensor, share: float) -> Tensor:
    """Down to the share of the side and up again, as Pillow does with its box filter: columns, then rows."""
    for axis in (3, 2):
        first, last = placed(boxes, images.device, images.shape[axis], share)
        both = images.index_select(axis, first).to(torch.int16) + images.index_select(axis, last)
        images = ((both + 1) >> 1).to(torch.uint8)
    return images


def boxes(length: int, share: float) -> NDArray[np.int64]:
    """Return (2, length): first and last pixel of the box that each pixel shows. Boxes have one pixel or two."""
    small = max(1, int(length * share))
    step = length / small
    centre = (np.arange(small) + 0.5) * step
    first = (centre - step / 2 + 0.5).astype(np.int64)
    last = np.minimum((centre + step / 2 + 0.5).astype(np.int64), length) - 1
    last -= (last - centre + 0.5) * (1 / step) > 0.5  # on the edge of a box, as Pillow rounds
    shown = ((np.arange(length) + 0.5) * (small / length)).astype(np.int64)
    return np.stack([first, last])[:, shown]
