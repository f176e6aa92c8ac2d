"""Elastic against a linear solver for the affine map, and scipy for smooth noise and for places between pixels."""

import numpy as np
import pytest
from scipy import ndimage

from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.corruptions.draws import Draws, keys
from tests.data.corruptions.pictures import numbered, pictures
from tests.data.corruptions.recipes import moved_corners


def taken(plane: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.floor(ndimage.map_coordinates(plane, [y, x], order=1, mode="mirror") + 0.5)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 24, 40), (3, 33, 35), (1, 64, 64)])
@pytest.mark.parametrize("severity", range(1, 6))
def test_elastic_is_an_affine_map_and_smooth_displacements(shape: tuple[int, int, int], severity: int) -> None:
    """Places are rounded to 1/64 of a pixel, twice: each a grey level where neighbours differ by 64."""
    images, (_, height, width) = pictures(3, shape), shape
    reach, sigma, corner = (number * min(height, width) for number in CONSTANTS["elastic"][severity - 1])
    draws = Draws(keys(f"elastic {severity}", numbered(images))).centred(6 + 2 * height * width).numpy()
    rows, columns = np.mgrid[:height, :width].astype(float)
    for image, our, own in zip(images, corrupt(images, "elastic", severity, numbered(images)), draws, strict=True):
        x, y = np.tensordot(moved_corners(own[:6], corner, height, width), [columns, rows, np.ones_like(rows)], 1)
        fields = own[6:].reshape(2, height, width) / 32768
        dy, dx = (reach * ndimage.gaussian_filter(field, sigma, mode="reflect", truncate=3) for field in fields)
        for plane, made in zip(image.numpy().astype(float), our.numpy().astype(float), strict=True):
            theirs = taken(taken(plane, y, x), rows + dy, columns + dx)
            assert np.abs(made - theirs).mean() < 1
            assert np.abs(made - theirs).max() <= 1 + 2 * np.ptp(plane) / 64
