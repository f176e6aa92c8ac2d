"""Copy host arrays to the device, without making the host wait for the device's other work."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, cycle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.devices import has_streams

Arrival = Callable[[], Tensor]
"""A batch under way. Call it where the batch is used: the device then waits for the copy, and the host does not."""
ALIGNMENT = 16
"""Bytes. Every array of a parcel begins at a multiple, where any type of number may begin."""


def upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """Copy a small array to the device. A GPU gets it from pinned memory: any other copy would first wait for it."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.type == "meta":
        return torch.empty_like(tensor, device=device)  # nothing is sent to where there are no values
    return tensor.pin_memory().to(device, non_blocking=True) if has_streams(device) else tensor.to(device)


def upload_together(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[Tensor]:
    """Copy small arrays to the device; to a GPU as one parcel, since each copy costs as much as a kernel."""
    if not has_streams(device):
        return [upload(array, device) for array in arrays]
    room = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays]
    starts = [0, *accumulate(room)]
    parcel = np.empty(starts[-1], np.uint8)
    for start, array in zip(starts, arrays, strict=False):
        parcel[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    sent = upload(parcel, device)
    return [
        sent[start : start + array.nbytes].view(torch_type(array.dtype)).view(array.shape)
        for start, array in zip(starts, arrays, strict=False)
    ]


def torch_type(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


@contextmanager
def on_stream(stream: torch.Stream) -> Iterator[None]:
    """Send this thread's work on the device to a stream."""
    before = torch.accelerator.current_stream(stream.device)
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)


class Sender:
    """Copies batches to the device; to a GPU through two pinned buffers in turn, on its own stream, as it computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.Stream(device) if has_streams(device) else None
        self.lanes = cycle([Lane(), Lane()])
        self.lane = next(self.lanes)

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """Return memory for the next batch to send."""
        if self.stream is None:
            return torch.from_numpy(np.empty(shape, dtype))
        self.lane = next(self.lanes)
        return self.lane.buffer(shape, dtype)

    def send(self, host: Tensor) -> Arrival:
        if self.stream is None:
            copy = host.to(self.device)
            return lambda: copy
        with on_stream(self.stream):
            sent = host.to(self.device, non_blocking=True)
            copied = self.stream.record_event()
        self.lane.copied = copied
        return partial(self.arrived, sent, copied)

    def arrived(self, sent: Tensor, copied: torch.Event) -> Tensor:
        """Make the stream that uses a batch wait for its copy, and keep its memory until that stream is done."""
        current = torch.accelerator.current_stream(self.device)
        current.wait_event(copied)
        sent.record_stream(current)
        return sent


class Lane:
    """A pinned buffer that grows with what is sent through it."""

    def __init__(self) -> None:
        self.memory = torch.empty(0, dtype=torch.uint8)
        self.copied: torch.Event | None = None

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        self.wait_until_free()
        needed = int(np.prod(shape)) * dtype.itemsize
        if len(self.memory) < needed:
            self.memory = torch.empty(needed, dtype=torch.uint8, pin_memory=True)
        return self.memory[:needed].view(torch_type(dtype)).view(shape)

    def wait_until_free(self) -> None:
        """Wait until the batch before is copied; only the reading thread waits for that."""
        if self.copied is not None:
            self.copied.synchronize()
