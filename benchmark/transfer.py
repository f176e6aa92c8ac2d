"""Host arrays on their way to the device, without making the host wait for what the device is doing."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Arrival = Callable[[], Tensor]
"""A batch under way. Called where it is used, it has the device wait for the copy, and not the host."""


def upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """A small array on the device. To a GPU from pinned memory: any other copy would first wait for the device."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Sender:
    """Host → device; to a GPU through two pinned buffers in turn, on a stream of its own, while the device computes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        is_gpu = device.type == "cuda"
        self.stream = torch.cuda.Stream(device) if is_gpu else None  # type: ignore[no-untyped-call]
        self.lanes = cycle([Lane(), Lane()])
        self.lane = next(self.lanes)

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """Memory for the next batch to send."""
        if self.stream is None:
            return torch.from_numpy(np.empty(shape, dtype))
        self.lane = next(self.lanes)
        return self.lane.buffer(shape, dtype)

    def send(self, host: Tensor) -> Arrival:
        if self.stream is None:
            here = host.to(self.device)
            return lambda: here
        with torch.cuda.stream(self.stream):
            sent = host.to(self.device, non_blocking=True)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record(self.stream)
        self.lane.left = copied

        def arrival() -> Tensor:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(copied)
            sent.record_stream(current)
            return sent

        return arrival


class Lane:
    """A pinned buffer that grows with what is sent through it."""

    def __init__(self) -> None:
        self.memory = torch.empty(0, dtype=torch.uint8)
        self.left: torch.cuda.Event | None = None

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """Free once the batch before has left it; only the reading thread waits for that."""
        if self.left is not None:
            self.left.synchronize()
        needed = int(np.prod(shape)) * dtype.itemsize
        if len(self.memory) < needed:
            self.memory = torch.empty(needed, dtype=torch.uint8, pin_memory=True)
        return self.memory[:needed].view(torch.from_numpy(np.empty(0, dtype)).dtype).view(shape)
