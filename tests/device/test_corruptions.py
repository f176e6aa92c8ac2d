"""Corruptions on the device: the bits of the CPU, and nothing that waits."""

import pytest
import torch

from benchmark.config.evaluation import CORRUPTIONS, SEVERITIES
from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.devices import forbidden_syncs
from tests.data.corruptions.pictures import numbered, pictures

pytestmark = pytest.mark.device


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 8), (3, 40, 24)])
def test_images_have_the_bits_of_the_cpu(kind: str, shape: tuple[int, int, int], device: torch.device) -> None:
    images = pictures(5, shape)
    there, ids = images.to(device), numbered(images).to(device)
    for severity in SEVERITIES:
        with forbidden_syncs(device):
            made = corrupt(there, kind, severity, ids)
        assert torch.equal(made.cpu(), corrupt(images, kind, severity, numbered(images)))
