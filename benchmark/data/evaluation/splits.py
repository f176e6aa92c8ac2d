"""Bring the images of a part of an evaluation set to the device, as a split that can be predicted."""

from functools import partial

import torch
from torch import Tensor

from benchmark.data.corruptions.corrupt import corrupt
from benchmark.data.dataset import DataSet, Split
from benchmark.data.devices import has_doubles
from benchmark.data.evaluation.parts import Part
from benchmark.data.residency import place_on_device


def split_of(part: Part, data: DataSet, device: torch.device, budget: int) -> Split:
    """Return the images of a part: its own, or the test images, to be corrupted once they are cropped."""
    if part.images is not None:
        (pixels,) = place_on_device([part.images], device, budget)
        labels = torch.from_numpy(part.images.labels).to(device)
        return Split(pixels, labels, part.images.rows.astype("int32"))
    ids = torch.from_numpy(data.test.ids).to(device, torch.int64)
    return Split(
        data.test.pixels, data.test.labels, data.test.ids, partial(corrupted, part.kind, part.severity or 0, ids)
    )


def corrupted(kind: str, severity: int, ids: Tensor, images: Tensor, positions: slice) -> Tensor:
    """Return the test images at some positions under a corruption; their numbers are the keys of its draws.

    Its exact sums need float64: where a device has none, the host makes them.
    """
    if has_doubles(images.device):
        return corrupt(images, kind, severity, ids[positions])
    return corrupt(images.cpu(), kind, severity, ids[positions].cpu()).to(images.device)
