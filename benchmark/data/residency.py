"""Bring images to the device as they are stored: keep them there, or stream them from where they lie.

Both ways give the same batches to the bit.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.base.prefetch import ahead
from benchmark.data.crops import RaggedBatch, Raw
from benchmark.data.devices import enter
from benchmark.data.images import Images, Ragged
from benchmark.data.transfer import Arrival, Sender

Rows = NDArray[np.int64]
Take = Callable[[Tensor], Raw]
"""Takes the positions of a batch, on the device, and returns its images. Their copy may still be under way."""
READ_AHEAD = 2
"""Batches of a stream that are read before they are needed."""


@dataclass(frozen=True)
class Stacked:
    """Images of one size: an array (N, C, H, W), and a tensor of the same form on the device."""

    array: NDArray[Any]

    def __len__(self) -> int:
        return len(self.array)

    def sizes(self, rows: Rows) -> NDArray[np.int64]:
        """Return height and width of each image (B, 2)."""
        return np.tile(np.array(self.array.shape[2:]), (len(rows), 1))

    def part(self, rows: Rows) -> "Stacked":
        """Copy these images alone into memory."""
        return Stacked(self.array[rows])

    def shape(self, rows: Rows) -> tuple[int, ...]:
        """Return the shape of an array that holds just these images."""
        return len(rows), *self.array.shape[1:]

    def fill(self, rows: Rows, out: NDArray[Any]) -> None:
        if self.array.flags.c_contiguous:
            self.array.take(rows, axis=0, out=out, mode="clip")  # the default mode would fill a copy first
        else:
            out[...] = self.array[rows]  # take would copy the whole array first

    def as_batch(self, tensor: Tensor, rows: Rows) -> Raw:
        """Return a tensor that `fill` filled with just these images as a batch."""
        return tensor

    def select(self, tensor: Tensor, rows: Rows, device_rows: Tensor) -> Raw:
        """Return a batch from a tensor that holds all images; `device_rows` are the rows on its device."""
        return tensor.index_select(0, device_rows)


@dataclass(frozen=True)
class Packed:
    """Images of different sizes, one after the other, with the methods of `Stacked`."""

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

    def as_batch(self, tensor: Tensor, rows: Rows) -> Raw:
        lengths = self.lengths(rows)
        return RaggedBatch(tensor, np.cumsum(lengths) - lengths, self.sizes(rows), self.pictures.channels)

    def select(self, tensor: Tensor, rows: Rows, device_rows: Tensor) -> Raw:
        return RaggedBatch(tensor, self.pictures.starts[rows], self.sizes(rows), self.pictures.channels)


Layout = Stacked | Packed


@dataclass(frozen=True)
class Resident:
    """The images of a split, by position in it, in a tensor on the device."""

    layout: Layout
    tensor: Tensor

    def sizes(self, positions: Rows) -> NDArray[np.int64]:
        return self.layout.sizes(positions)

    def fetch(self, batches: Iterable[Rows]) -> Iterator[Take]:
        """Yield for each batch a function that returns the images at these positions."""
        for positions in batches:
            yield partial(self.layout.select, self.tensor, positions)


@dataclass(frozen=True)
class Streamed:
    """The images of a split, by position in it, read from where they lie for each batch."""

    layout: Layout
    rows: Rows
    device: torch.device

    @cached_property
    def sender(self) -> Sender:
        return Sender(self.device)

    def sizes(self, positions: Rows) -> NDArray[np.int64]:
        return self.layout.sizes(self.rows[positions])

    def fetch(self, batches: Iterable[Rows]) -> Iterator[Take]:
        """Read and send the batches in a separate thread, before they are needed."""
        sender = self.sender

        def send(positions: Rows) -> tuple[Rows, Arrival]:
            rows = self.rows[positions]
            host = sender.buffer(self.layout.shape(rows), self.layout.array.dtype)
            self.layout.fill(rows, host.numpy())
            return rows, sender.send(host)

        with ThreadPoolExecutor(1, initializer=enter, initargs=(self.device,)) as thread:
            for rows, arrival in ahead(thread, send, batches, READ_AHEAD):
                yield partial(self.receive, rows, arrival)

    def receive(self, rows: Rows, arrival: Arrival, _: Tensor) -> Raw:
        return self.layout.as_batch(arrival(), rows)


Pixels = Resident | Streamed


def place_on_device(splits: Iterable[Images], device: torch.device, budget: int) -> list[Pixels]:
    """Keep each split on the device as long as it fits in the budget, in bytes; stream the others."""
    placed: list[Pixels] = []
    for images in splits:
        pictures = images.pictures
        layout: Layout = Packed(pictures) if isinstance(pictures, Ragged) else Stacked(np.asarray(pictures))
        needed = int(np.prod(layout.shape(images.rows))) * layout.array.itemsize
        if needed > budget:
            placed.append(Streamed(layout, images.rows, device))
        else:
            placed.append(keep_on_device(layout, images.rows, device))
            budget -= needed
    return placed


def keep_on_device(layout: Layout, rows: Rows, device: torch.device) -> Resident:
    """Copy images to the device. On the CPU a whole source stays where it is: processes share a mapped file."""
    if not np.array_equal(rows, np.arange(len(layout))):
        layout = layout.part(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nor is it written
        return Resident(layout, torch.from_numpy(layout.array).to(device))
