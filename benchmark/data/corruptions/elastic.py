"""Elastic: the image is turned and sheared a little, then stretched like rubber."""

from itertools import product

import torch
from torch import Tensor

from benchmark.data.corruptions.constants import shorter_side
from benchmark.data.corruptions.draws import Draws
from benchmark.data.corruptions.filters import REFLECT, packed, smooth, unpacked

TRUNCATE = 3.0
POINT_BITS, SLOPE_BITS, PLACE_BITS = 10, 20, 6
"""Bits below 1 of the corners, of the slopes of the affine map, of the places that pixels are taken from."""
UNIT = 1 << PLACE_BITS


def elastic(images: Tensor, draws: Draws, reach: float, sigma: float, corner: float) -> Tensor:
    """Warp by a random affine map, then by displacements that are smooth noise. All lengths are shares of the side."""
    height, width = images.shape[2:]
    side, draw = shorter_side(images), draws.centred(6 + 2 * height * width)
    images = warped(images, *affine_places(draw[:, :6].to(torch.int64), corner * side, height, width))
    if not reach:
        return images
    fields = smooth(draw[:, 6:].reshape(-1, 2, height, width), sigma * side, TRUNCATE, REFLECT)
    moves = fields.round_().mul_(round(reach * side * UNIT) / 2**15).round_().to(torch.int32)
    rows, columns = grid(height, width, images.device, PLACE_BITS)
    return warped(images, rows + moves[:, 0], columns + moves[:, 1])


def grid(height: int, width: int, device: torch.device, bits: int) -> tuple[Tensor, Tensor]:
    """Return the row (H, 1) and the column (W) of each pixel, in units of 2^−bits."""
    rows, columns = (torch.arange(length, device=device, dtype=torch.int32) << bits for length in (height, width))
    return rows[:, None], columns


def affine_places(draw: Tensor, corner: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return where each pixel comes from (n, H, W) under the affine map that moves three corners of a square.

    The corners lie `arm` around the middle: p₀ = (+, +), p₁ = (+, −), p₂ = (−, −). Each moves by up to `corner` to q.
    A pixel q₁ + a·(q₀ − q₁) + b·(q₂ − q₁) comes from p₁ + a·(p₀ − p₁) + b·(p₂ − p₁).
    """
    arm = max(1, min(height, width) // 3) << POINT_BITS
    moves = (draw * round(corner * 2**POINT_BITS) >> 15).view(-1, 3, 2)
    (x0, y0), (x1, y1), (x2, y2) = (point.unbind(1) for point in moves.unbind(1))
    ux, uy, vx, vy = x0 - x1, 2 * arm + y0 - y1, x2 - x1 - 2 * arm, y2 - y1
    determinant = ux * vy - uy * vx
    middle_y, middle_x = height // 2 << POINT_BITS, width // 2 << POINT_BITS
    rows, columns = grid(height, width, draw.device, POINT_BITS)
    down, right = rows - each(middle_y - arm + y1), columns - each(middle_x + arm + x1)

    def slope(part: Tensor) -> Tensor:
        return each(torch.div((2 * arm * part) << SLOPE_BITS, determinant, rounding_mode="floor"))

    bits = POINT_BITS + SLOPE_BITS - PLACE_BITS
    half = 1 << (bits - 1)
    y = ((middle_y - arm) << SLOPE_BITS) + half + right * slope(vy) - down * slope(vx)
    x = ((middle_x + arm) << SLOPE_BITS) + half + right * slope(uy) - down * slope(ux)
    return (y >> bits).to(torch.int32), (x >> bits).to(torch.int32)


def each(numbers: Tensor) -> Tensor:
    return numbers[:, None, None]


def warped(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Take each pixel from a place (n, H, W), in units of 2^−6 pixels, between the four pixels around it."""
    count, channels, height, width = images.shape
    pixels, total = packed(images).view(count, -1), torch.zeros_like(y, dtype=torch.int64)
    for (row, tall), (column, wide) in product(around(y, height), around(x, width)):
        place = (row * width + column).to(torch.int64).view(count, -1)
        total += pixels.gather(1, place).view(y.shape).mul_(tall * wide)
    return unpacked(2 * total, channels)


def around(place: Tensor, length: int) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return the pixels before and behind a place, each with its weight."""
    first, share = place >> PLACE_BITS, place & (UNIT - 1)
    return (mirrored(first, length), UNIT - share), (mirrored(first + 1, length), share)


def mirrored(place: Tensor, length: int) -> Tensor:
    """Return the pixel that stands for one beyond the border: dcb|abc."""
    place = place.abs()
    return place.minimum(2 * (length - 1) - place).clamp(0, length - 1)
