"""Cut boxes out of images that may differ in size, and resize them, without reading a value on the host."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.transfer import upload, upload_together

CHUNK = 32
"""Images resized at a time; this limits the memory of their indices and weights."""


@dataclass(frozen=True)
class RaggedBatch:
    """Images of different sizes in one flat tensor on the device. Their starts and sizes are on the host."""

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


def center_crop(raw: Raw, size: tuple[int, int]) -> Tensor:
    """Return the middle of every image; images that all have one size are returned as they are."""
    if isinstance(raw, Tensor):
        return raw
    corner = np.round((raw.sizes - size) / 2).astype(np.int64)
    boxes = np.concatenate([corner, np.tile(size, (len(corner), 1))], axis=1)
    return gather_boxes(raw, upload(addresses(raw, boxes), raw.flat.device), boxes)


def addresses(raw: RaggedBatch, boxes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each box (5, B): its start, the step to the next plane and the next row, its last row and column."""
    top, left, heights, widths = boxes.T
    row = raw.sizes[:, 1]
    return np.stack([raw.starts + top * row + left, raw.sizes.prod(axis=1), row, heights - 1, widths - 1])


def gather_boxes(raw: RaggedBatch, where: Tensor, boxes: NDArray[np.int64]) -> Tensor:
    """Return the boxes (top, left, height, width) in one tensor of the largest size; smaller ones repeat their edge."""
    first, plane, row_step, last_y, last_x = where[:, :, None, None, None]
    device, (height, width) = raw.flat.device, boxes[:, 2:].max(axis=0).tolist()
    y = torch.arange(height, device=device)[:, None].minimum(last_y)
    x = torch.arange(width, device=device).minimum(last_x)
    c = torch.arange(raw.channels, device=device)[:, None, None]
    return raw.flat.take(first + plane * c + row_step * y + x)


def resized_crop(raw: Raw, boxes: NDArray[np.int64], size: tuple[int, int]) -> Tensor:
    """Resize each box to `size` with an antialiasing triangle filter; return floats, from 0 to 1 for uint8 images."""
    ragged, lengths = as_ragged(raw), boxes[:, 2:].T.astype(np.float32)
    device = ragged.flat.device
    where, sides = upload_together([addresses(ragged, boxes), lengths], device)
    images = torch.empty(len(boxes), ragged.channels, *size, device=device)
    for start in range(0, len(boxes), CHUNK):
        part = slice(start, start + CHUNK)
        images[part] = resize_boxes(gather_boxes(ragged, where[:, part], boxes[part]), sides[:, part], size)
    return images.div_(255.0) if ragged.flat.dtype == torch.uint8 else images


def resize_boxes(boxes: Tensor, lengths: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize with two matrix products, rows and columns; `lengths` (2, B) say which part of each tensor is filled."""
    rows = triangle_weights(lengths[0], boxes.shape[2], size[0])
    columns = triangle_weights(lengths[1], boxes.shape[3], size[1])
    return rows[:, None] @ (boxes.to(torch.float32) @ columns[:, None].mT)


def triangle_weights(lengths: Tensor, longest: int, size: int) -> Tensor:
    """Return (B, size, longest): the weight of each old pixel in each new one; 0 beyond an image's length."""
    scale = lengths[:, None, None] / size
    centre = (torch.arange(size, device=lengths.device)[:, None] + 0.5) * scale
    pixel = torch.arange(longest, device=lengths.device)
    weights = (1 - (pixel + 0.5 - centre).abs() / scale.clamp(min=1)).clamp(min=0) * (pixel < lengths[:, None, None])
    return weights / weights.sum(2, keepdim=True)
