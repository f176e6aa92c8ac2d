"""JPEG and back, to the bit as libjpeg does it: colours at half the resolution, transforms in whole numbers."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.corruptions.tables import as_bytes, placed

BLOCK = 8
TO_YCC = ((19595, 38470, 7471), (-11059, -21709, 32768), (32768, -27439, -5329))
YCC_OFFSET = (1 << 15, (128 << 16) + (1 << 15) - 1, (128 << 16) + (1 << 15) - 1)
RED_OF_CR, BLUE_OF_CB, GREEN_OF_CB, GREEN_OF_CR = 91881, 116130, -22554, -46802
"""Times 2^16."""
COSINES = (
    (8192, 8192, 8192, 8192),
    (11363, 9633, 6437, 2260),
    (10703, 4433, -4433, -10703),
    (9633, -2259, -11362, -6436),
    (8192, -8192, -8192, 8192),
    (6437, -11362, 2261, 9633),
    (4433, -10704, 10704, -4433),
    (2260, -6436, 9633, -11363),
)
"""√8·2^13 times the cosine transform, first half of each row: the sums of libjpeg's rounded constants."""
LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)


def jpeg(images: Tensor, quality: int) -> Tensor:
    """Return images as they come back from a JPEG file of this quality."""
    if images.shape[1] == 1:
        return coded(images, LUMINANCE, quality).to(torch.uint8)
    height, width = images.shape[2:]
    planes = ycc(images.to(torch.int32))
    luminance = coded(planes[:, :1], LUMINANCE, quality)
    chrominance = coded(halved(planes[:, 1:]), CHROMINANCE, quality)
    return rgb(luminance, doubled(chrominance[..., : (width + 1) // 2])[:, :, :height, :width])


def ycc(images: Tensor) -> Tensor:
    red, green, blue = images.unbind(1)
    rows = zip(TO_YCC, YCC_OFFSET, strict=True)
    return torch.stack([(r * red + g * green + b * blue + offset) >> 16 for (r, g, b), offset in rows], 1)


def rgb(luminance: Tensor, chrominance: Tensor) -> Tensor:
    cb, cr = (chrominance - 128).chunk(2, 1)
    colours = RED_OF_CR * cr, GREEN_OF_CB * cb + GREEN_OF_CR * cr, BLUE_OF_CB * cb
    return torch.cat([as_bytes(luminance + rounded(colour, 16)) for colour in colours], 1)


def rounded(numbers: Tensor, bits: int) -> Tensor:
    return (numbers + (1 << (bits - 1))) >> bits


def halved(planes: Tensor) -> Tensor:
    """Return means over 2×2 pixels; halves go down and up by turns. The last column is repeated to fill blocks."""
    planes = extended(planes, 2, 2 * BLOCK)
    total = planes[:, :, ::2] + planes[:, :, 1::2]
    total = total[..., ::2] + total[..., 1::2]
    return (total + 1 + torch.arange(total.shape[3], device=planes.device, dtype=torch.int32) % 2) >> 2


def extended(planes: Tensor, rows: int, columns: int) -> Tensor:
    """Repeat the last row and column until their numbers are multiples."""
    for axis, multiple in ((2, rows), (3, columns)):
        length = planes.shape[axis]
        index = torch.arange(-(-length // multiple) * multiple, device=planes.device).clamp(max=length - 1)
        planes = planes.index_select(axis, index)
    return planes


def doubled(planes: Tensor) -> Tensor:
    """Return planes of twice the size: each new pixel is 3/4 of the nearest old one and 1/4 of the next, both ways."""
    above, below = neighbours(planes, 2)
    rows = interleaved(3 * planes + above, 3 * planes + below, 2)
    left, right = neighbours(rows, 3)
    return interleaved((3 * rows + left + 8) >> 4, (3 * rows + right + 7) >> 4, 3)


def neighbours(planes: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return what stands before and behind each place; the border is its own neighbour."""
    last = planes.shape[axis] - 1
    places = torch.arange(last + 1, device=planes.device)
    return planes.index_select(axis, (places - 1).clamp(min=0)), planes.index_select(axis, (places + 1).clamp(max=last))


def interleaved(first: Tensor, second: Tensor, axis: int) -> Tensor:
    return torch.stack([first, second], axis + 1).flatten(axis, axis + 1)


def coded(planes: Tensor, table: tuple[tuple[int, ...], ...], quality: int) -> Tensor:
    """Return planes (n, P, H, W) after transform, quantisation and back, in blocks of 8×8."""
    height, width = planes.shape[2:]
    full = extended(planes, BLOCK, BLOCK)
    cosines, steps = placed(cosine_matrix, planes.device), placed(quantisation, planes.device, table, quality)
    strips = full.to(torch.float64).sub_(128).view(-1, BLOCK, full.shape[3])
    found = divided(cosines @ divided(within_rows(strips, cosines.mT), 11), 15)
    kept = quantised(found.view(-1, BLOCK, full.shape[3] // BLOCK, BLOCK), steps[:, None]).view(strips.shape)
    back = divided(within_rows(divided(cosines.mT @ kept, 11), cosines), 18)
    return back.add_(128).clamp_(0, 255).to(torch.int32).view(full.shape)[:, :, :height, :width]


def divided(numbers: Tensor, bits: int) -> Tensor:
    """Divide whole numbers that are stored as floats by 2^bits, and round to the nearest: no step is inexact."""
    return numbers.mul_(0.5**bits).add_(0.5).floor_()


def within_rows(strips: Tensor, matrix: Tensor) -> Tensor:
    return (strips.reshape(-1, BLOCK) @ matrix).view(strips.shape)


def quantised(found: Tensor, steps: Tensor) -> Tensor:
    """Return coefficients, found times 8, as the nearest multiples of their steps; halves are rounded away from 0."""
    return torch.copysign(4 * steps, found).add_(found).div_(8 * steps).trunc_().mul_(steps)


def cosine_matrix() -> NDArray[np.float64]:
    half = np.array(COSINES, dtype=np.float64)
    return np.concatenate([half, half[:, ::-1] * (-1.0) ** np.arange(BLOCK)[:, None]], axis=1)


def quantisation(table: tuple[tuple[int, ...], ...], quality: int) -> NDArray[np.float64]:
    """Return the steps of a quality from 1 to 100; at 50 they are those of the table."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    return ((np.array(table) * percent + 50) // 100).clip(1, 255).astype(np.float64)
