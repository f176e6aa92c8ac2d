"""All kinds and severities: the same bits in any batch and on any device, larger errors with severity."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmark.check.sync_guard import no_host_syncs
from benchmark.config.evaluation import CORRUPTIONS, SEVERITIES
from benchmark.data.corruptions import corrupt as module
from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import DRAWN, FIXED, VERSION, corrupt
from tests.data.corruptions.pictures import SHAPES, numbered, pictures

GOLDEN = Path(__file__).parent / "golden.json"
NOT_MONOTONE = ("glass blur", "saturate", "elastic")
"""By their constants: little blur after as many swaps, less colour before more, smaller turns with larger waves."""
kinds = pytest.mark.parametrize("kind", CORRUPTIONS)


def photographs(count: int) -> Tensor:
    """Pictures with the spectrum of photographs: amplitudes fall with the frequency."""
    random = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(32)[:, None], np.fft.fftfreq(32))
    frequency[0, 0] = 1
    waves = np.fft.fft2(random.normal(size=(count, 4, 32, 32))) / frequency
    planes = np.fft.ifft2(waves).real
    planes = planes / planes.std((2, 3), keepdims=True)
    colours = 120 + 50 * planes[:, :1] + 25 * planes[:, 1:]
    return torch.from_numpy(colours.clip(0, 255).astype(np.uint8))


def error(kind: str, severity: int, images: Tensor) -> float:
    return (corrupt(images, kind, severity, numbered(images)).double() - images).square().mean().item()


def test_all_kinds_of_the_settings_have_constants_for_all_severities() -> None:
    assert set(CORRUPTIONS) == set(CONSTANTS) == {*FIXED, *DRAWN}
    assert {len(each) for each in CONSTANTS.values()} == {len(SEVERITIES)}


@kinds
@pytest.mark.parametrize("shape", [*SHAPES, (3, 224, 224)])
def test_images_keep_their_shape_and_type(kind: str, shape: tuple[int, int, int]) -> None:
    images = pictures(2, shape)
    before = images.clone()
    for severity in (1, 5) if shape[1] < 224 else (1,):
        made = corrupt(images, kind, severity, numbered(images))
        assert made.shape == images.shape
        assert made.dtype == torch.uint8
        assert made.is_contiguous()
    assert torch.equal(images, before)


@kinds
def test_most_pixels_change_but_the_picture_can_be_recognised(kind: str) -> None:
    images = photographs(20)
    for severity in SEVERITIES:
        made = corrupt(images, kind, severity, numbered(images))
        assert not torch.equal(made, images)
        assert np.corrcoef(made.numpy().reshape(-1), images.numpy().reshape(-1))[0, 1] > 0.3


@kinds
def test_images_do_not_depend_on_their_batch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images, ids = pictures(15), torch.arange(15) * 7 + 3
    for severity in (2, 5):
        whole = corrupt(images, kind, severity, ids)
        for size in (1, 7):
            parts = zip(images.split(size), ids.split(size), strict=True)
            assert torch.equal(torch.cat([corrupt(part, kind, severity, own) for part, own in parts]), whole)
        order = torch.tensor([4, 2, 14, 0, 9])
        assert torch.equal(corrupt(images[order], kind, severity, ids[order]), whole[order])
        strided = images.to(memory_format=torch.channels_last)
        assert torch.equal(corrupt(strided, kind, severity, ids.to(torch.int32)), whole)
        with monkeypatch.context() as patch:
            patch.setattr(module, "CHUNK", 4 * 3 * 32 * 32)
            assert torch.equal(corrupt(images, kind, severity, ids), whole)


@pytest.mark.parametrize("kind", DRAWN)
def test_the_number_of_an_image_gives_its_draws(kind: str) -> None:
    same = pictures(1).expand(4, -1, -1, -1)
    made = corrupt(same, kind, 3, torch.tensor([0, 1, 70_000, 1]))
    assert torch.equal(made[1], made[3])
    assert not torch.equal(made[0], made[1])
    assert not torch.equal(made[1], made[2])


@pytest.mark.parametrize("kind", FIXED)
def test_what_draws_nothing_does_not_ask_for_the_number(kind: str) -> None:
    same = pictures(1).expand(2, -1, -1, -1)
    made = corrupt(same, kind, 3, torch.tensor([0, 1]))
    assert torch.equal(made[0], made[1])


@kinds
def test_no_images_are_no_images(kind: str) -> None:
    assert corrupt(pictures(0), kind, 3, torch.arange(0)).shape == (0, 3, 32, 32)


@kinds
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 40, 24)])
def test_nothing_waits_for_the_device(kind: str, shape: tuple[int, int, int]) -> None:
    """On the meta device whatever reads a value raises."""
    images = torch.empty(5, *shape, dtype=torch.uint8, device="meta")
    ids = torch.arange(5, device="meta")
    with no_host_syncs():
        for severity in SEVERITIES:
            made = corrupt(images, kind, severity, ids)
            assert (made.device.type, made.shape, made.dtype) == ("meta", images.shape, torch.uint8)


@pytest.mark.parametrize("kind", [kind for kind in CORRUPTIONS if kind not in NOT_MONOTONE])
def test_the_squared_error_grows_with_severity(kind: str) -> None:
    errors = [error(kind, severity, photographs(100)) for severity in SEVERITIES]
    assert errors == sorted(errors)
    assert errors[0] < 0.7 * errors[4]


@pytest.mark.parametrize("kind", NOT_MONOTONE)
def test_where_the_constants_do_not_mean_the_error_to_grow_it_does_not(kind: str) -> None:
    errors = [error(kind, severity, photographs(100)) for severity in SEVERITIES]
    assert errors != sorted(errors)


def hashes() -> dict[str, str]:
    batches = [pictures(3, shape) for shape in ((3, 32, 32), (1, 8, 8), (3, 40, 24), (3, 64, 64))]
    return {f"{kind} {severity}": digest(batches, kind, severity) for kind in CORRUPTIONS for severity in SEVERITIES}


def digest(batches: list[Tensor], kind: str, severity: int) -> str:
    made = [corrupt(images, kind, severity, numbered(images) + 5).numpy().tobytes() for images in batches]
    return hashlib.sha256(b"".join(made)).hexdigest()[:16]


def test_every_bit_is_as_it_was() -> None:
    """Where a bit is meant to change, raise VERSION, and run `python -m tests.data.corruptions.test_corrupt`."""
    golden = json.loads(GOLDEN.read_text())
    assert golden.pop("version") == VERSION
    assert hashes() == golden


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({"version": VERSION, **hashes()}, indent=1) + "\n")
