"""Changes of colour against colorsys, fog against a loop over the points of a cloud."""

import colorsys

import numpy as np
import pytest
import torch

from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.corruptions.draws import Draws, keys
from tests.data.corruptions.pictures import SHAPES, largest_gap, numbered, pictures

ROUNDING = 0.5
severities = pytest.mark.parametrize("severity", range(1, 6))


def colours() -> torch.Tensor:
    """Colours of all kinds, greys, black and white among them: two images of 24×24."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (2, 24 * 24, 3))
    pixels[0, :256] = np.arange(256)[:, None]
    pixels[1, :64] = random.integers(0, 2, (64, 3)) * 255
    return torch.from_numpy(pixels.reshape(2, 24, 24, 3).transpose(0, 3, 1, 2).astype(np.uint8).copy())


def by_pixel(images: torch.Tensor, factor: float, more_colour: float, more_light: float) -> np.ndarray:
    """Each pixel through HSV and back, with saturation·factor + more_colour and value + more_light."""

    def changed(pixel: np.ndarray) -> tuple[float, ...]:
        hue, saturation, value = colorsys.rgb_to_hsv(*pixel / 255)
        saturation = min(max(saturation * factor + more_colour, 0), 1)
        return colorsys.hsv_to_rgb(hue, saturation, min(value + more_light, 1))

    return 255 * np.apply_along_axis(changed, 1, images.numpy().astype(np.float64))


@severities
def test_brightness_is_added_to_the_value_of_hsv(severity: int) -> None:
    images = colours()
    theirs = by_pixel(images, 1, 0, CONSTANTS["brightness"][severity - 1][0])
    assert largest_gap(corrupt(images, "brightness", severity, numbered(images)), theirs) < ROUNDING + 0.01


@severities
def test_saturate_changes_the_saturation_of_hsv(severity: int) -> None:
    images = colours()
    theirs = by_pixel(images, *CONSTANTS["saturate"][severity - 1], 0)
    assert largest_gap(corrupt(images, "saturate", severity, numbered(images)), theirs) < ROUNDING + 0.01


@severities
def test_grey_images_get_brighter_and_have_no_colour_to_change(severity: int) -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    brighter = (np.arange(256) + 255 * CONSTANTS["brightness"][severity - 1][0]).clip(0, 255)
    assert largest_gap(corrupt(images, "brightness", severity, numbered(images)), brighter) < ROUNDING + 0.01
    assert torch.equal(corrupt(images, "saturate", severity, numbered(images)), images)


@pytest.mark.parametrize("shape", SHAPES)
@severities
def test_contrast_pulls_each_channel_to_its_mean(shape: tuple[int, int, int], severity: int) -> None:
    images = pictures(3, shape)
    (kept,) = CONSTANTS["contrast"][severity - 1]
    pixels = images.numpy().astype(np.float64)
    mean = pixels.mean((2, 3), keepdims=True)
    ours = corrupt(images, "contrast", severity, numbered(images))
    assert largest_gap(ours, (pixels - mean) * kept + mean) < ROUNDING + 0.01


def cloud(draws: np.ndarray, decay: float) -> np.ndarray:
    """Diamond-square, point by point, on a grid whose ends meet; `draws` lie between −1 and 1."""
    size = len(draws)
    points, step, amplitude = np.zeros((size, size)), size, 1.0
    while step > 1:
        half = step // 2
        for r in range(half, size, step):
            for c in range(half, size, step):
                corners = [points[(r + i) % size, (c + j) % size] for i in (-half, half) for j in (-half, half)]
                points[r, c] = np.mean(corners) + amplitude * draws[r, c]
        for r in range(0, size, half):
            for c in range((r + half) % step, size, step):
                around = [
                    points[(r + i) % size, (c + j) % size] for i, j in ((-half, 0), (half, 0), (0, -half), (0, half))
                ]
                points[r, c] = np.mean(around) + amplitude * draws[r, c]
        step, amplitude = half, amplitude / decay**2
    return (points - points.min()) / np.ptp(points)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 24, 40), (3, 33, 35)])
@severities
def test_fog_is_the_cloud_of_the_recipe(shape: tuple[int, int, int], severity: int) -> None:
    images = pictures(2, shape)
    thickness, decay = CONSTANTS["fog"][severity - 1]
    size = 2 ** int(np.ceil(np.log2(max(shape[1:]))))
    draws = Draws(keys(f"fog {severity}", numbered(images))).numbers(size * size).view(2, size, size).numpy()
    ours = corrupt(images, "fog", severity, numbered(images))
    for image, our, own in zip(images.numpy() / 255, ours, draws, strict=True):
        foggy = image + thickness * cloud(own / 32768 - 1, decay)[: shape[1], : shape[2]]
        assert largest_gap(our, 255 * foggy * image.max() / (image.max() + thickness)) < ROUNDING + 0.1


def test_fog_over_a_black_image_is_black() -> None:
    images = torch.zeros(2, 3, 16, 16, dtype=torch.uint8)
    assert torch.equal(corrupt(images, "fog", 5, numbered(images)), images)
