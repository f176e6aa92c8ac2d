"""Parts of images that may differ in size, taken out of one flat tensor and resized, without a look at a value."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.transfer import upload, upload_together

CHUNK = 32
"""Images resized at a time: bounds the memory of their indices and weights."""


@dataclass(frozen=True)
class RaggedBatch:
    """Images of different sizes on the device. Where they begin and how large they are, the host knows."""

    flat: Tensor
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    channels: int


Raw = Tensor | RaggedBatch
"""A batch as it is stored: (B, C, H, W), or of different sizes."""


def as_ragged(raw: Raw) -> RaggedBatch:
    if isinstance(raw, RaggedBatch):
        return raw
    count, channels, height, width = raw.shape
    starts = np.arange(count) * (channels * height * width)
    return RaggedBatch(raw.reshape(-1), starts, np.tile(np.array([[height, width]]), (count, 1)), channels)


def crop(raw: Raw, size: tuple[int, int]) -> Tensor:
    """The middle of every image; an image of that size as it is."""
    if isinstance(raw, Tensor):
        return raw
    corner = np.round((raw.sizes - size) / 2).astype(np.int64)
    return cut(raw, np.concatenate([corner, np.tile(size, (len(corner), 1))], axis=1))


def cut(raw: RaggedBatch, boxes: NDArray[np.int64]) -> Tensor:
    """The boxes (top, left, height, width) as one tensor as large as the largest; smaller ones repeat their edge."""
    return taken(raw, upload(addresses(raw, boxes), raw.flat.device), boxes)


def addresses(raw: RaggedBatch, boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(5, B): where each box begins, how far it is to the next plane and row, and its last row and column."""
    top, left, heights, widths = boxes.T
    row = raw.sizes[:, 1]
    return np.stack([raw.starts + top * row + left, raw.sizes.prod(axis=1), row, heights - 1, widths - 1])


def taken(raw: RaggedBatch, where: Tensor, boxes: NDArray[np.int64]) -> Tensor:
    """The boxes at these addresses on the device."""
    first, plane, row_step, last_y, last_x = where[:, :, None, None, None]
    device, (height, width) = raw.flat.device, boxes[:, 2:].max(axis=0).tolist()
    y = torch.arange(height, device=device)[:, None].minimum(last_y)
    x = torch.arange(width, device=device).minimum(last_x)
    c = torch.arange(raw.channels, device=device)[:, None, None]
    return raw.flat.take(first + plane * c + row_step * y + x)


def resized_crop(raw: Raw, boxes: NDArray[np.int64], size: tuple[int, int]) -> Tensor:
    """Each box resized to `size` with an antialiasing triangle filter: floats, [0, 1] for uint8 images."""
    ragged, lengths = as_ragged(raw), boxes[:, 2:].T.astype(np.float32)
    device = ragged.flat.device
    where, sides = upload_together([addresses(ragged, boxes), lengths], device)
    images = torch.empty(len(boxes), ragged.channels, *size, device=device)
    for start in range(0, len(boxes), CHUNK):
        part = slice(start, start + CHUNK)
        images[part] = resized(taken(ragged, where[:, part], boxes[part]), sides[:, part], size)
    return images.div_(255.0) if ragged.flat.dtype == torch.uint8 else images


def resized(boxes: Tensor, lengths: Tensor, size: tuple[int, int]) -> Tensor:
    """Two matrix products: rows, then columns, of the part of each tensor that `lengths` (2, B) say is filled."""
    rows = triangle_weights(lengths[0], boxes.shape[2], size[0])
    columns = triangle_weights(lengths[1], boxes.shape[3], size[1])
    return rows[:, None] @ (boxes.to(torch.float32) @ columns[:, None].mT)


def triangle_weights(lengths: Tensor, longest: int, size: int) -> Tensor:
    """(B, size, longest): how much of each of `length` pixels goes into each of `size`; the rest weighs nothing."""
    scale = lengths[:, None, None] / size
    centre = (torch.arange(size, device=lengths.device)[:, None] + 0.5) * scale
    pixel = torch.arange(longest, device=lengths.device)
    weights = (1 - (pixel + 0.5 - centre).abs() / scale.clamp(min=1)).clamp(min=0) * (pixel < lengths[:, None, None])
    return weights / weights.sum(2, keepdim=True)
