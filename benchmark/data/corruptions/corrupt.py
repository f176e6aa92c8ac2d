"""Corrupt images: one kind at one severity, with draws that depend on nothing but these and the images' numbers."""

from collections.abc import Callable, Mapping
from math import prod

import torch
from torch import Tensor

from benchmark.data.corruptions.blur import defocus_blur, gaussian_blur, glass_blur
from benchmark.data.corruptions.color import brightness, contrast, saturate
from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.draws import Draws, keys
from benchmark.data.corruptions.elastic import elastic
from benchmark.data.corruptions.fog import fog
from benchmark.data.corruptions.jpeg import jpeg
from benchmark.data.corruptions.movement import motion_blur, zoom_blur
from benchmark.data.corruptions.noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from benchmark.data.corruptions.pixelate import pixelate

VERSION = 1
"""Raised when any bit of the images changes: sets of another version are other sets."""
CHUNK = 1 << 19
"""Values corrupted at a time: what is made of them on the way stays small, and in the cache of a CPU."""
FIXED: Mapping[str, Callable[..., Tensor]] = {
    "gaussian blur": gaussian_blur,
    "defocus blur": defocus_blur,
    "zoom blur": zoom_blur,
    "brightness": brightness,
    "contrast": contrast,
    "saturate": saturate,
    "jpeg": jpeg,
    "pixelate": pixelate,
}
"""Functions of the images and the constants."""
DRAWN: Mapping[str, Callable[..., Tensor]] = {
    "gaussian noise": gaussian_noise,
    "shot noise": shot_noise,
    "impulse noise": impulse_noise,
    "speckle noise": speckle_noise,
    "glass blur": glass_blur,
    "motion blur": motion_blur,
    "fog": fog,
    "elastic": elastic,
}
"""Functions of the images, their draws and the constants."""


def corrupt(images: Tensor, kind: str, severity: int, ids: Tensor) -> Tensor:
    """Return images (n, C, H, W) of bytes under a corruption; `ids` are their numbers in their data set.

    Images are grey (C = 1) or coloured (C = 3).
    """
    if not len(images):
        return images.clone()
    constants = CONSTANTS[kind][severity - 1]
    chunk = max(1, CHUNK // prod(images.shape[1:]))
    parts = torch.split(images, chunk)
    if kind in FIXED:
        return torch.cat([FIXED[kind](part, *constants) for part in parts])
    draws = map(Draws, torch.split(keys(f"{kind} {severity}", ids), chunk))
    return torch.cat([DRAWN[kind](part, own, *constants) for part, own in zip(parts, draws, strict=True)])
