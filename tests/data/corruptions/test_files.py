"""JPEG and pixelate against Pillow: the same bits."""

import io

import pytest
import torch
from PIL import Image

from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.corruptions.jpeg import jpeg
from tests.data.corruptions.pictures import SHAPES, as_pillow, from_pillow, numbered, pictures


def saved_and_opened(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


@pytest.mark.parametrize("shape", [*SHAPES, (1, 13, 9), (3, 13, 9), (3, 17, 31), (3, 100, 75)])
@pytest.mark.parametrize("severity", range(1, 6))
def test_jpeg_is_what_pillow_writes_and_reads(shape: tuple[int, int, int], severity: int) -> None:
    images = pictures(6, shape)
    ours = corrupt(images, "jpeg", severity, numbered(images))
    (quality,) = CONSTANTS["jpeg"][severity - 1]
    for image, our in zip(images, ours, strict=True):
        assert torch.equal(our, from_pillow(saved_and_opened(as_pillow(image), int(quality))))


@pytest.mark.parametrize("quality", [1, 10, 30, 75, 95, 100])
def test_jpeg_of_noise_at_other_qualities(quality: int) -> None:
    """Noise reaches values beyond black and white, and every coefficient."""
    images = torch.randint(0, 256, (8, 3, 40, 24), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    for image, our in zip(images, jpeg(images, quality), strict=True):
        assert torch.equal(our, from_pillow(saved_and_opened(as_pillow(image), quality)))


@pytest.mark.parametrize("shape", [*SHAPES, (1, 7, 50), (3, 96, 100), (1, 224, 160)])
@pytest.mark.parametrize("severity", range(1, 6))
def test_pixelate_is_pillows_box_filter(shape: tuple[int, int, int], severity: int) -> None:
    images = pictures(4, shape)
    ours = corrupt(images, "pixelate", severity, numbered(images))
    (share,) = CONSTANTS["pixelate"][severity - 1]
    for image, our in zip(images, ours, strict=True):
        picture = as_pillow(image)
        small = picture.resize((int(picture.width * share), int(picture.height * share)), Image.Resampling.BOX)
        assert torch.equal(our, from_pillow(small.resize(picture.size, Image.Resampling.BOX)))
