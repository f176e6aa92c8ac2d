"""Augment batches: draw random numbers on the host, one set per image, and apply them with pure functions.

The numbers come from a CPU generator in a fixed order. So they depend neither on the device nor on where images lie.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from benchmark.config.training import AugmentConfig
from benchmark.data.crops import Raw, center_crop, resized_crop

Numbers = TypeVar("Numbers")
"""Arrays on the host, or tensors on the device."""
RATIO = (3 / 4, 4 / 3)
ATTEMPTS = 10
"""torchvision's bounds of a random crop's width over height, and how often it tries before it takes the middle."""
LUMINANCE = (0.2989, 0.587, 0.114)


@dataclass(frozen=True)
class Draws(Generic[Numbers]):
    """The random numbers of one view of a batch; None where the augmentation is off."""

    offsets: Numbers | None = None
    """(B, 2, 1), integers: top and left of the crop from the padded image."""
    mirrored: Numbers | None = None
    """(B, 1), booleans."""
    factors: Numbers | None = None
    """(B, 3), floats: factors of brightness, contrast, saturation."""
    order: Numbers | None = None
    """(B, 3), integers: which of the three is applied first, second, third."""
    boxes: NDArray[np.int64] | None = None
    """(B, 4): top, left, height, width. They stay on the host, which needs the size of the largest one."""
    noise: Numbers | None = None
    """(B, C), floats: standard normal, one for each number of a vector."""
    kept: Numbers | None = None
    """(B, C), booleans: which numbers of a vector stay as they are."""

    def part(self, rows: slice) -> Self:
        """Return the numbers of some images of the batch."""
        return type(self)(**{name: array[rows] for name, array in vars(self).items() if array is not None})

    def arrays(self) -> dict[str, Numbers]:
        """Return the arrays that the device needs, by field."""
        return {name: array for name, array in vars(self).items() if name != "boxes" and array is not None}

    def uploaded(self, arrived: Iterator[Tensor]) -> "Draws[Tensor]":
        """Return the same numbers on the device: each array is replaced by the next tensor of `arrived`."""
        return Draws(**{name: next(arrived) for name in self.arrays()}, boxes=self.boxes)


def draw(
    config: AugmentConfig, sizes: NDArray[np.int64], generator: torch.Generator, channels: int = 1
) -> Draws[NDArray[Any]]:
    """Draw the numbers of one view of images with these heights and widths (B, 2)."""
    count = len(sizes)
    offsets = mirrored = boxes = factors = order = noise = kept = None
    if config.crop_padding or config.flip:
        corners = torch.randint(0, 2 * config.crop_padding + 1, (2, count, 1), generator=generator)
        offsets = corners.transpose(0, 1).numpy()
        mirrored = (torch.rand(count, 1, generator=generator) < (0.5 if config.flip else 0.0)).numpy()
    if config.random_resized_crop:
        boxes = random_boxes(sizes, config.crop_scale, generator)
    if config.color_jitter:
        least, most = max(0.0, 1 - config.color_jitter), 1 + config.color_jitter
        factors = (least + (most - least) * torch.rand(count, 3, generator=generator)).numpy()
        order = torch.rand(count, 3, generator=generator).argsort(dim=1).numpy()
    if config.noise:
        noise = torch.randn(count, channels, generator=generator).numpy()
    if config.feature_dropout:
        kept = (torch.rand(count, channels, generator=generator) >= config.feature_dropout).numpy()
    return Draws(offsets, mirrored, factors, order, boxes, noise, kept)


def random_boxes(sizes: NDArray[np.int64], scale: tuple[float, ...], generator: torch.Generator) -> NDArray[np.int64]:
    """Draw crop boxes as torchvision does: the first of ten tries that fits in the image, else its middle.

    The middle is the largest box whose ratio is allowed.
    """
    count, (height, width) = len(sizes), sizes.T.astype(np.float64)
    draws = torch.rand(2, ATTEMPTS, count, generator=generator, dtype=torch.float64).numpy()
    area = height * width * (scale[0] + (scale[1] - scale[0]) * draws[0])
    ratio = np.exp(np.log(RATIO[0]) + (np.log(RATIO[1]) - np.log(RATIO[0])) * draws[1])
    widths, heights = np.round(np.sqrt(area * ratio)), np.round(np.sqrt(area / ratio))
    fits = (widths > 0) & (widths <= width) & (heights > 0) & (heights <= height)
    first = fits.argmax(axis=0), np.arange(count)
    middle_h = np.where(width / height < RATIO[0], np.round(width / RATIO[0]), height)
    middle_w = np.where(width / height > RATIO[1], np.round(height * RATIO[1]), width)
    any_fits = fits.any(axis=0)
    h, w = np.where(any_fits, heights[first], middle_h), np.where(any_fits, widths[first], middle_w)
    position = torch.rand(2, count, generator=generator, dtype=torch.float64).numpy()
    top = np.where(any_fits, np.floor(position[0] * (height - h + 1)), (height - h) // 2)
    left = np.where(any_fits, np.floor(position[1] * (width - w + 1)), (width - w) // 2)
    return np.stack([top, left, h, w], axis=1).astype(np.int64)


def view(raw: Raw, config: AugmentConfig, draws: Draws[Tensor], size: tuple[int, int]) -> Tensor:
    """Return one augmented view (B, C, *size) of a batch, not yet normalised; uint8 as long as nothing mixes pixels."""
    images = center_crop(raw, size) if draws.boxes is None else resized_crop(raw, draws.boxes, size)
    if draws.offsets is not None and draws.mirrored is not None:
        if config.crop_padding:
            images = padded_crop(images, draws.offsets, draws.mirrored, config.crop_padding)
        else:
            images = torch.where(draws.mirrored[:, :, None, None], images.flip(3), images)
    if draws.factors is not None and draws.order is not None:
        images = jitter_colors(to_unit_range(images), draws.factors, draws.order)
    return images


def padded_crop(images: Tensor, offsets: Tensor, mirrored: Tensor, padding: int) -> Tensor:
    """Crop the zero-padded images, flipped where `mirrored`, with one gather that gives each pixel its origin."""
    count, channels, height, width = images.shape
    rows = offsets[:, 0] + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device)
    columns = offsets[:, 1] + torch.where(mirrored, width - 1 - columns, columns)
    source = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    source = source.view(count, 1, height * width).expand(count, channels, height * width)
    padded = pad(images, (padding,) * 4).view(count, channels, -1)
    return padded.gather(2, source).view(images.shape)


def jitter_colors(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Change brightness, contrast and saturation, in each image's own order.

    All three are other + factor·(image − other), where `other` is black, the mean grey, the grey image.
    """
    for turn in range(3):
        which = order[:, turn, None, None, None]
        factor = factors.gather(1, order[:, turn, None])[:, :, None, None]
        grey = luminance(images)
        mean = grey.mean((1, 2, 3), keepdim=True)
        other = torch.where(which == 2, grey, torch.where(which == 1, mean, torch.zeros_like(mean)))
        images = torch.lerp(other, images, factor).clamp_(0, 1)
    return images


def luminance(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(1)
    return (LUMINANCE[0] * red + LUMINANCE[1] * green + LUMINANCE[2] * blue)[:, None]


def to_unit_range(images: Tensor) -> Tensor:
    """Return images in single precision; uint8 pixels are divided by 255."""
    floats = images.to(torch.float32)
    return floats / 255.0 if images.dtype == torch.uint8 else floats


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Subtract the mean of each channel and divide by its standard deviation."""
    return (to_unit_range(images) - mean[:, None, None]).div_(std[:, None, None])


def perturb(vectors: Tensor, config: AugmentConfig, draws: Draws[Tensor]) -> Tensor:
    """Add noise to normalised vectors (B, C, 1, 1), and set some of their numbers to 0, which is their mean."""
    if draws.noise is not None:
        vectors = vectors + config.noise * draws.noise[:, :, None, None]
    if draws.kept is not None:
        vectors = vectors * draws.kept[:, :, None, None]
    return vectors
