"""Parts of the recipes as they are usually written: one image after the other, in floats."""

import math

import numpy as np
from scipy import ndimage


def swapped(image: np.ndarray, up: np.ndarray, left: np.ndarray, step: int) -> np.ndarray:
    """The recipe: from the last pixel to the first, each swaps with a partner above and to the left."""
    image = image.copy()
    for h in range(image.shape[0] - 1, step, -1):
        for w in range(image.shape[1] - 1, step, -1):
            partner = h - up[h, w], w - left[h, w]
            image[h, w], image[partner] = image[partner], image[h, w]
    return image


def trail(radius: float, sigma: float, angle: float) -> np.ndarray:
    """The kernel of ImageMagick's motion blur: half a Gaussian on the pixels of a line."""
    length = 2 * math.ceil(radius) + 1
    kernel = np.zeros((2 * length + 1, 2 * length + 1))
    for i in range(length):
        row, column = math.ceil(i * math.sin(angle) - 0.5), math.ceil(i * math.cos(angle) - 0.5)
        kernel[length + row, length + column] += math.exp(-(i**2) / (2 * sigma**2))
    return kernel / kernel.sum()


def zoomed(plane: np.ndarray, zoom: float) -> np.ndarray:
    """The middle of a plane, enlarged by scipy, without what is too much."""
    crop = [math.ceil(length / zoom) for length in plane.shape]
    start = [(length - size) // 2 for length, size in zip(plane.shape, crop, strict=True)]
    middle = plane[start[0] : start[0] + crop[0], start[1] : start[1] + crop[1]]
    large = ndimage.zoom(middle, zoom, order=1)
    trim = [(size - length) // 2 for size, length in zip(large.shape, plane.shape, strict=True)]
    return large[trim[0] : trim[0] + plane.shape[0], trim[1] : trim[1] + plane.shape[1]]


def moved_corners(draws: np.ndarray, corner: float, height: int, width: int) -> np.ndarray:
    """The affine map (2, 3) from pixels of the new image to (x, y) in the old one, by three pairs of points."""
    arm = min(height, width) // 3
    middle = np.array([width // 2, height // 2])
    points = middle + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = points + corner * draws.reshape(3, 2) / 32768
    return np.linalg.solve(np.column_stack([moved, np.ones(3)]), points).T
