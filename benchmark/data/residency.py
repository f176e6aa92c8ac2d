"""Images by position, brought to the device as they are stored: kept there, or streamed from where they lie.

Both give the same batches to the bit; who reads them cannot tell which it is.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.ahead import ahead
from benchmark.crops import RaggedBatch, Raw
from benchmark.devices import enter
from benchmark.sources import Images, Ragged
from benchmark.transfer import Arrival, Sender

Rows = NDArray[np.int64]
Take = Callable[[Tensor], Raw]
"""Called with the positions of a batch on the device, gives its images. Their copy may still be under way there."""
READ_AHEAD = 2
"""Batches of a stream that are ready or under way beside the one in use."""


class Pixels(Protocol):
    """The images of a split, by position in it."""

    def sizes(self, positions: Rows) -> NDArray[np.int64]:
        """Height and width of each (B, 2)."""
        ...

    def fetch(self, batches: Iterable[Rows]) -> Iterator[Take]:
        """The images at these positions, batch by batch."""
        ...


class Layout(Protocol):
    """How images lie in one array on the host, and in a tensor of the same form on the device."""

    @property
    def array(self) -> NDArray[Any]: ...
    def __len__(self) -> int: ...
    def sizes(self, rows: Rows) -> NDArray[np.int64]: ...
    def part(self, rows: Rows) -> "Layout":
        """The same images alone, in memory."""
        ...

    def shape(self, rows: Rows) -> tuple[int, ...]:
        """Of an array that holds just these images."""
        ...

    def fill(self, rows: Rows, out: NDArray[Any]) -> None: ...
    def whole(self, held: Tensor, rows: Rows) -> Raw:
        """A batch from a tensor that `fill` filled with just these images."""
        ...

    def select(self, held: Tensor, rows: Rows, there: Tensor) -> Raw:
        """A batch from a tensor that holds the array; `there` are the rows on its device."""
        ...


@dataclass(frozen=True)
class Stacked:
    """Images of one size (N, C, H, W)."""

    array: NDArray[Any]

    def __len__(self) -> int:
        return len(self.array)

    def sizes(self, rows: Rows) -> NDArray[np.int64]:
        return np.tile(np.array(self.array.shape[2:]), (len(rows), 1))

    def part(self, rows: Rows) -> "Stacked":
        return Stacked(self.array[rows])

    def shape(self, rows: Rows) -> tuple[int, ...]:
        return len(rows), *self.array.shape[1:]

    def fill(self, rows: Rows, out: NDArray[Any]) -> None:
        self.array.take(rows, axis=0, out=out, mode="clip")  # the default mode would fill a copy first

    def whole(self, held: Tensor, rows: Rows) -> Raw:
        return held

    def select(self, held: Tensor, rows: Rows, there: Tensor) -> Raw:
        return held.index_select(0, there)


@dataclass(frozen=True)
class Packed:
    """Images of different sizes, one behind the other."""

    pictures: Ragged

    @property
    def array(self) -> NDArray[Any]:
        return self.pictures.flat

    def __len__(self) -> int:
        return len(self.pictures)

    def sizes(self, rows: Rows) -> NDArray[np.int64]:
        return self.pictures.sizes[rows]

    def part(self, rows: Rows) -> "Packed":
        flat = np.empty(self.shape(rows), np.uint8)
        self.fill(rows, flat)
        return Packed(Ragged(flat, self.sizes(rows), self.pictures.channels))

    def shape(self, rows: Rows) -> tuple[int, ...]:
        return (int(self.lengths(rows).sum()),)

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        return np.asarray(self.pictures.channels * self.sizes(rows).prod(axis=1))

    def fill(self, rows: Rows, out: NDArray[Any]) -> None:
        starts, ends = self.pictures.starts[rows], self.pictures.starts[rows + 1]
        np.concatenate([self.array[start:end] for start, end in zip(starts, ends, strict=True)], out=out)

    def whole(self, held: Tensor, rows: Rows) -> Raw:
        lengths = self.lengths(rows)
        return RaggedBatch(held, np.cumsum(lengths) - lengths, self.sizes(rows), self.pictures.channels)

    def select(self, held: Tensor, rows: Rows, there: Tensor) -> Raw:
        return RaggedBatch(held, self.pictures.starts[rows], self.sizes(rows), self.pictures.channels)


@dataclass(frozen=True)
class Resident:
    layout: Layout
    held: Tensor

    def sizes(self, positions: Rows) -> NDArray[np.int64]:
        return self.layout.sizes(positions)

    def fetch(self, batches: Iterable[Rows]) -> Iterator[Take]:
        for positions in batches:
            yield partial(self.layout.select, self.held, positions)


@dataclass(frozen=True)
class Streamed:
    layout: Layout
    rows: Rows
    device: torch.device

    @cached_property
    def sender(self) -> Sender:
        return Sender(self.device)

    def sizes(self, positions: Rows) -> NDArray[np.int64]:
        return self.layout.sizes(self.rows[positions])

    def fetch(self, batches: Iterable[Rows]) -> Iterator[Take]:
        """Read and sent by a thread of its own, ahead of their use."""
        sender = self.sender

        def send(positions: Rows) -> tuple[Rows, Arrival]:
            rows = self.rows[positions]
            host = sender.buffer(self.layout.shape(rows), self.layout.array.dtype)
            self.layout.fill(rows, host.numpy())
            return rows, sender.send(host)

        with ThreadPoolExecutor(1, initializer=enter, initargs=(self.device,)) as thread:
            for rows, arrival in ahead(thread, send, batches, READ_AHEAD):
                yield partial(self.arrived, rows, arrival)

    def arrived(self, rows: Rows, arrival: Arrival, _: Tensor) -> Raw:
        return self.layout.whole(arrival(), rows)


def place(splits: Iterable[Images], device: torch.device, budget: int) -> list[Pixels]:
    """Each split on the device as long as the budget, in bytes, lasts; the others streamed."""
    placed: list[Pixels] = []
    for images in splits:
        pictures = images.pictures
        layout: Layout = Packed(pictures) if isinstance(pictures, Ragged) else Stacked(np.asarray(pictures))
        needed = int(np.prod(layout.shape(images.rows))) * layout.array.itemsize
        if needed > budget:
            placed.append(Streamed(layout, images.rows, device))
        else:
            placed.append(resident(layout, images.rows, device))
            budget -= needed
    return placed


def resident(layout: Layout, rows: Rows, device: torch.device) -> Resident:
    """On the CPU a whole source stays where it lies: processes share it if it is a mapped file."""
    if not np.array_equal(rows, np.arange(len(layout))):
        layout = layout.part(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nor is it written
        return Resident(layout, torch.from_numpy(layout.array).to(device))
