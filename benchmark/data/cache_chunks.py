"""Cut a split into chunks of consecutive images, as the cache stores them; decode and sum their pixels."""

import hashlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmark.data.cache import SplitFiles, chunk_bounds, image_starts
from benchmark.data.images import Images, Ragged
from benchmark.data.preprocessing import channel_sums
from benchmark.data.sources._files import ImageFiles

Originals = ImageFiles | NDArray[Any]
"""Some images before they are cached: files still to be decoded, or pixels."""
Journal = dict[tuple[str, int], str]
"""(split, number of a chunk) → its checksum."""
BYTES = np.dtype(np.uint8)


class Chunk(NamedTuple):
    """What is kept of a chunk after its pixels are written: its checksum and sums by channel."""

    checksum: str
    sums: NDArray[Any]


Chunks = dict[int, Chunk]


@dataclass(frozen=True)
class SplitLayout:
    """A split to be cached: its images in order, and their sizes if these differ."""

    files: SplitFiles
    images: Images
    sizes: NDArray[np.int64] | None
    shape: list[int]
    dtype: np.dtype[Any] = BYTES

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Return where each image begins in the file, and where the last one ends."""
        return image_starts(len(self.images), self.shape, self.sizes, self.dtype.itemsize)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Return the first image and the end of each chunk."""
        return chunk_bounds(self.starts)

    def originals(self, index: int) -> Originals:
        """Return the images of a chunk."""
        pictures, rows = self.images.pictures, self.images.rows[slice(*self.bounds[index])]
        return pictures.take(rows) if isinstance(pictures, ImageFiles) else np.asarray(pictures)[rows]

    def sums(self, index: int, pixels: bytes) -> NDArray[Any]:
        """Return the sums by channel of a chunk's pixels."""
        (first, end), flat = self.bounds[index], np.frombuffer(pixels, self.dtype)
        if self.sizes is None:
            return channel_sums(flat.reshape(end - first, *self.shape))
        ragged = Ragged(flat, self.sizes[first:end], self.shape[0])
        return sum_images(ragged[number] for number in range(len(ragged)))

    def byte_range(self, index: int) -> tuple[int, int]:
        """Return where a chunk begins in the file, and its length."""
        first, end = self.bounds[index]
        return int(self.starts[first]), int(self.starts[end] - self.starts[first])


def decode(originals: Originals) -> tuple[bytes, NDArray[Any]]:
    """Return the pixels of some images, one after the other, and their sums by channel."""
    if not isinstance(originals, ImageFiles):
        return originals.tobytes(), channel_sums(originals)
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
