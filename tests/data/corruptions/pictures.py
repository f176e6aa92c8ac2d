"""Made-up pictures: smooth shapes and colours, as photographs have, with some fine grain."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor

SHAPES = ((3, 32, 32), (1, 32, 32), (3, 24, 40), (1, 8, 8), (3, 8, 8), (3, 33, 35), (3, 64, 64))
CPU = torch.device("cpu")


def pictures(count: int, shape: tuple[int, int, int] = (3, 32, 32), seed: int = 0) -> Tensor:
    channels, height, width = shape
    random = np.random.default_rng(seed)
    images = np.empty((count, channels, height, width), np.uint8)
    for image in images:
        coarse = Image.fromarray(random.integers(0, 256, (5, 6, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float64)
        grainy = smooth + random.normal(0, 4, smooth.shape)
        image[:] = grainy.clip(0, 255).astype(np.uint8).transpose(2, 0, 1)[:channels]
    return torch.from_numpy(images)


def numbered(images: Tensor) -> Tensor:
    return torch.arange(len(images))


def as_pillow(image: Tensor) -> Image.Image:
    return Image.fromarray(image[0].numpy() if len(image) == 1 else image.permute(1, 2, 0).numpy())


def from_pillow(image: Image.Image) -> Tensor:
    pixels = torch.from_numpy(np.array(image))
    return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1)


def each(images: Tensor) -> np.ndarray:
    """Planes as float64: one for each channel of each image."""
    return images.flatten(0, 1).numpy().astype(np.float64)


def largest_gap(ours: Tensor, theirs: np.ndarray) -> float:
    return float(np.abs(ours.numpy().astype(np.float64) - theirs.reshape(tuple(ours.shape))).max())
