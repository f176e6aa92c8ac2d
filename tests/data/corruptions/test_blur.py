"""Blurs against scipy, and against loops that follow the recipe pixel by pixel."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.signal import convolve2d

from benchmark.data.corruptions.blur import shuffled
from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.corruptions.draws import Draws, keys
from tests.data.corruptions.pictures import SHAPES, each, largest_gap, numbered, pictures
from tests.data.corruptions.recipes import swapped, trail, zoomed

Shape = tuple[int, int, int]
ROUNDING = 0.5
severities = pytest.mark.parametrize("severity", range(1, 6))
shapes = pytest.mark.parametrize("shape", SHAPES)


def larger(shape: Shape) -> float:
    return max(1.0, min(shape[1:]) / 32)


@shapes
@severities
def test_gaussian_blur_is_scipys(shape: Shape, severity: int) -> None:
    images = pictures(3, shape)
    sigma = CONSTANTS["gaussian blur"][severity - 1][0] * larger(shape)
    theirs = np.stack([ndimage.gaussian_filter(plane, sigma, mode="nearest") for plane in each(images)])
    assert largest_gap(corrupt(images, "gaussian blur", severity, numbered(images)), theirs) < ROUNDING + 0.02


@shapes
@severities
def test_defocus_blur_is_scipys_correlation_with_a_soft_disk(shape: Shape, severity: int) -> None:
    images = pictures(3, shape)
    radius, sigma = (number * larger(shape) for number in CONSTANTS["defocus blur"][severity - 1])
    grid = np.arange(-8, 9)
    disk = np.hypot(*np.meshgrid(grid, grid)) <= radius + 1e-12
    reach = np.arange(-round(larger(shape)), round(larger(shape)) + 1)
    edge = np.exp(-(reach[:, None] ** 2 + reach**2) / (2 * sigma**2))
    kernel = convolve2d(disk / disk.sum(), edge / edge.sum(), mode="same")
    theirs = np.stack([ndimage.correlate(plane, kernel, mode="mirror") for plane in each(images)])
    assert largest_gap(corrupt(images, "defocus blur", severity, numbered(images)), theirs) < ROUNDING + 0.05


@pytest.mark.parametrize(
    ("size", "step"), [((32, 32), 1), ((8, 8), 1), ((7, 12), 1), ((20, 33), 2), ((40, 36), 5), ((3, 3), 1)]
)
def test_shuffled_pixels_are_those_of_swaps_one_after_the_other(size: tuple[int, int], step: int) -> None:
    moves = torch.randint(0, (step + 1) ** 2, (6, *size), generator=torch.Generator().manual_seed(0))
    for own, ours in zip(moves.numpy(), shuffled(moves, step).numpy(), strict=True):
        theirs = swapped(np.arange(own.size).reshape(size), *divmod(own, step + 1), step)
        assert np.array_equal(ours, theirs.reshape(-1))


def test_a_value_can_be_handed_on_through_the_whole_image() -> None:
    """All swap with the pixel to their upper left: the last value travels along the diagonal."""
    source = shuffled(torch.full((1, 64, 64), 3), 1).view(64, 64).numpy()
    one = np.ones((64, 64), int)
    assert source[1, 1] == 63 * 65
    assert np.array_equal(source, swapped(np.arange(64 * 64).reshape(64, 64), one, one, 1))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 24, 40), (1, 64, 64)])
@severities
def test_glass_blur_is_blur_swaps_blur(shape: Shape, severity: int) -> None:
    """Where the first blur lies between two grey levels, either may have been shuffled."""
    images = pictures(2, shape)
    sigma, times = CONSTANTS["glass blur"][severity - 1]
    step, size = round(larger(shape)), shape[1:]
    draws = Draws(keys(f"glass blur {severity}", numbered(images))).numbers(int(times) * size[0] * size[1])
    moves = (draws.double() / 65536 * (step + 1) ** 2).floor().long().view(2, int(times), *size).numpy()
    ours = corrupt(images, "glass blur", severity, numbered(images))
    for image, our, own in zip(images.numpy().astype(np.float64), ours, moves, strict=True):
        for plane, made in zip(image, our, strict=True):
            blurred = np.floor(ndimage.gaussian_filter(plane, sigma * larger(shape), mode="nearest") + 0.5)
            for move in own:
                blurred = swapped(blurred, *divmod(move, step + 1), step)
            again = ndimage.gaussian_filter(blurred, sigma * larger(shape), mode="nearest")
            assert largest_gap(made, again) < ROUNDING + 0.6


@shapes
@severities
def test_motion_blur_is_scipys_correlation_with_half_a_line(shape: Shape, severity: int) -> None:
    images = pictures(4, shape)
    radius, sigma = (number * larger(shape) for number in CONSTANTS["motion blur"][severity - 1])
    draws = Draws(keys(f"motion blur {severity}", numbered(images))).numbers(1)[:, 0].numpy()
    ours = corrupt(images, "motion blur", severity, numbered(images))
    for image, our, draw in zip(images, ours, draws, strict=True):
        kernel = trail(radius, sigma, math.radians(90 * (draw // 64 + 0.5) / 1024 - 45))
        theirs = np.stack([ndimage.correlate(plane, kernel, mode="nearest") for plane in each(image[None])])
        assert largest_gap(our, theirs) < ROUNDING + 0.2


@shapes
@severities
def test_zoom_blur_is_the_mean_of_scipys_zooms(shape: Shape, severity: int) -> None:
    images = pictures(2, shape)
    (limit,) = CONSTANTS["zoom blur"][severity - 1]
    zooms = [1 + step / 100 for step in range(round(100 * (limit - 1)))]
    theirs = np.stack([np.mean([plane, *(zoomed(plane, zoom) for zoom in zooms)], axis=0) for plane in each(images)])
    assert largest_gap(corrupt(images, "zoom blur", severity, numbered(images)), theirs) < ROUNDING + 0.05
