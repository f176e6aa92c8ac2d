"""Constants of each corruption, by severity: those of CIFAR-10-C, for images of 32×32 with values from 0 to 1."""

from collections.abc import Mapping

from torch import Tensor

SIDE = 32
Numbers = tuple[float, ...]
CONSTANTS: Mapping[str, tuple[Numbers, ...]] = {
    # standard deviation
    "gaussian noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    # photons of a white pixel
    "shot noise": ((500,), (250,), (100,), (75,), (50,)),
    # share of values
    "impulse noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    # standard deviation of a white pixel
    "speckle noise": ((0.06,), (0.1,), (0.12,), (0.16,), (0.2,)),
    # σ *
    "gaussian blur": ((0.4,), (0.6,), (0.7,), (0.8,), (1,)),
    # radius of the disk *, σ of its edge *
    "defocus blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    # σ *, times that pixels are shuffled by a step *
    "glass blur": ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2)),
    # radius *, σ *
    "motion blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    # all zooms lie below
    "zoom blur": ((1.06,), (1.11,), (1.16,), (1.21,), (1.26,)),
    # thickness, decay of its roughness
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    # added to the value
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    # share of the contrast that is left
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    # factor of the saturation, and what is added to it
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    # quality
    "jpeg": ((80,), (65,), (58,), (50,), (40,)),
    # share of the side
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    # in shares of the side: displacement, its σ, movement of the three corners
    "elastic": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
}
"""What is marked with * is a length in pixels, and grows with the side of the image."""


def shorter_side(images: Tensor) -> int:
    return min(images.shape[2:])


def scale(images: Tensor) -> float:
    """Return how much longer lengths are than at 32×32. Never below 1, where most blurs would change no pixel."""
    return max(1.0, shorter_side(images) / SIDE)
