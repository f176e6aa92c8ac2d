"""Cut a split into chunks of consecutive images, as the cache stores them; decode and sum their pixels."""

import hashlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.data.cache import SplitFiles, chunk_bounds
from benchmark.data.images import Ragged
from benchmark.data.preprocessing import channel_sums
from benchmark.data.sources._files import ImageFiles


@dataclass(frozen=True)
class InMemory:
    """Some rows of an array, which may be a mapped file."""

    array: NDArray[Any]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, end: int) -> "InMemory":
        return InMemory(self.array, self.rows[start:end])


Originals = ImageFiles | InMemory
Journal = dict[tuple[str, int], str]
"""(split, number of a chunk) → its checksum."""


class Chunk(NamedTuple):
    """What is kept of a chunk after its pixels are written: its checksum and sums by channel."""

    checksum: str
    sums: NDArray[np.int64]


Chunks = dict[int, Chunk]


@dataclass(frozen=True)
class SplitLayout:
    """A split to be cached: its images in order, their sizes if these differ, and where each one begins in the file."""

    files: SplitFiles
    originals: Originals
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    shape: list[int]

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Return the first image and the end of each chunk."""
        return chunk_bounds(self.starts)

    def sums(self, index: int, pixels: bytes) -> NDArray[np.int64]:
        """Return the sums by channel of a chunk's pixels."""
        (first, end), flat = self.bounds[index], np.frombuffer(pixels, np.uint8)
        if self.sizes is None:
            return channel_sums(flat.reshape(end - first, *self.shape))
        ragged = Ragged(flat, self.sizes[first:end], self.shape[0])
        return sum_images(ragged[number] for number in range(len(ragged)))

    def byte_range(self, index: int) -> tuple[int, int]:
        """Return where a chunk begins in the file, and its length."""
        first, end = self.bounds[index]
        return int(self.starts[first]), int(self.starts[end] - self.starts[first])


def decode(originals: Originals) -> tuple[bytes, NDArray[np.int64]]:
    """Return the pixels of some images, one after the other, and their sums by channel."""
    if isinstance(originals, InMemory):
        images = originals.array[originals.rows]
        return images.tobytes(), channel_sums(images)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata; the pixels are what counts
        each = [originals[index] for index in range(len(originals))]
    return b"".join(image.tobytes() for image in each), sum_images(each)


def sum_images(images: Iterable[NDArray[np.uint8]]) -> NDArray[np.int64]:
    return np.asarray(np.sum([channel_sums(image[None]) for image in images], axis=0))


def good_chunks(split: SplitLayout, journal: Journal) -> Chunks:
    """Return the chunks whose pixels in the file have the checksum that the journal notes."""
    good: Chunks = {}
    if split.files.pixels.is_file():
        with split.files.pixels.open("rb") as file:
            for index in range(len(split.bounds)):
                checksum = journal.get((split.files.name, index))
                start, length = split.byte_range(index)
                file.seek(start)
                pixels = file.read(length) if checksum is not None else b""
                if checksum is not None and hashlib.sha256(pixels).hexdigest() == checksum:
                    good[index] = Chunk(checksum, split.sums(index, pixels))
    return good
