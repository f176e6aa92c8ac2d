"""Batched augmentations on the device: pure functions of (images, generator), one draw per image."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmark.config import AugmentConfig
from benchmark.errors import UserError


def check_supported(config: AugmentConfig) -> None:
    if config.random_resized_crop or config.color_jitter:
        raise UserError("augment.random_resized_crop and augment.color_jitter cannot be computed by this version yet")


def augment(images: Tensor, config: AugmentConfig, generator: torch.Generator) -> Tensor:
    """Zero-padded random crop and horizontal flip of a batch (B, C, H, W), before normalisation.

    Both are one gather: every output pixel names the padded input pixel it shows. Draws come from a CPU generator in a
    fixed order, so they do not depend on the device.
    """
    if not config.crop_padding and not config.flip:
        return images
    count, channels, height, width = images.shape
    padding = config.crop_padding
    offsets = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=generator)
    mirrored = torch.rand(count, 1, generator=generator) < (0.5 if config.flip else 0.0)
    offsets, mirrored = (draw.to(images.device, non_blocking=True) for draw in (offsets, mirrored))
    rows = offsets[0] + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device)
    columns = offsets[1] + torch.where(mirrored, width - 1 - columns, columns)
    source = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    source = source.view(count, 1, height * width).expand(count, channels, height * width)
    padded = pad(images, (padding,) * 4).view(count, channels, -1)
    return padded.gather(2, source).view(images.shape)


def normalise(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Float images with the given channel statistics; uint8 counts as [0, 255]/255."""
    scale = 255.0 if images.dtype == torch.uint8 else 1.0
    return (images.to(torch.float32) / scale - mean[:, None, None]) / std[:, None, None]
