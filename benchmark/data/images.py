"""Hold images with their labels, from any source, and the facts that are known before they are loaded."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.base.rows import choose_rows


@dataclass(frozen=True)
class Facts:
    """What is known of a data set before it is loaded."""

    num_classes: int
    num_train: int
    num_test: int
    shape: tuple[int, int, int]
    floats: bool = False
    """Whether pixels are floats, not 8-bit values."""
    download_bytes: int = 0
    """Size of the download, if the data set is missing; 0 = it cannot be downloaded."""
    sha256: str = ""
    """The hash of the cache, where it is the same on every machine."""

    @property
    def are_vectors(self) -> bool:
        """Return whether these are vectors: each number is a channel of its own, of one pixel."""
        return self.floats and self.shape[1:] == (1, 1)


class Pictures(Protocol):
    """Images (C, H, W) by number: an array (N, C, H, W), images of different sizes, or files still to be decoded."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Ragged:
    """Images of different sizes, one after the other in a flat array."""

    flat: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    """(N, 2): height and width of each."""
    channels: int

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Return where each image begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.channels * self.sizes.prod(axis=1))])

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        start, end = self.starts[index : index + 2]
        return self.flat[start:end].reshape(self.channels, *self.sizes[index])


@dataclass(frozen=True)
class Images:
    """A part of a data set: pictures, a label for each, and which pictures are used."""

    pictures: Pictures
    labels: NDArray[np.int64]
    rows: NDArray[np.int64]
    """Positions in `pictures`; a part of a part shares its pictures."""

    @classmethod
    def of(cls, pictures: Pictures, labels: NDArray[Any]) -> "Images":
        return cls(pictures, np.asarray(labels, np.int64), np.arange(len(labels)))

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: NDArray[np.int64]) -> "Images":
        return Images(self.pictures, self.labels[chosen], self.rows[chosen])

    def relabelled(self, numbers: NDArray[np.int64]) -> "Images":
        """Return the images under other labels, numbers[label]; leave out those whose number is negative."""
        labels = numbers[self.labels]
        kept = np.flatnonzero(labels >= 0)
        return Images(self.pictures, labels[kept], self.rows[kept])


@dataclass(frozen=True)
class Loaded:
    """The splits of a data set, and the exact posterior P(y|x) of the test images where it is known."""

    train: Images
    test: Images
    posterior: NDArray[np.float64] | None = None
    val: Images | None = None
    """The validation split that the data set itself provides, if any."""
    num_classes: int = 0
    mean: tuple[float, ...] = ()
    """Mean of the training images by channel, where their cache has it; `std` likewise."""
    std: tuple[float, ...] = ()
    labels_changed: float | None = None
    """The share of all training images whose label, from a file, is another than the source's own."""
    test_alone: bool = False
    """Whether there is nothing to train on; `train` then has the test images."""

    def splits(self) -> dict[str, Images]:
        named = {"train": None if self.test_alone else self.train, "test": self.test, "val": self.val}
        return {name: images for name, images in named.items() if images is not None}

    def subset(self, num_train: int, num_test: int, num_val: int = 0) -> "Loaded":
        """Return fixed random subsets of the splits, the same for every seed; 0 = all images."""
        test_rows = choose_rows(len(self.test), num_test)
        return replace(
            self,
            train=self.train.take(choose_rows(len(self.train), num_train)),
            test=self.test.take(test_rows),
            posterior=None if self.posterior is None else self.posterior[test_rows],
            val=None if self.val is None else self.val.take(choose_rows(len(self.val), num_val)),
        )

    def sha256(self) -> str:
        """Return the hash of images in memory: machines with equal hashes trained and tested on the same ones."""
        digest = hashlib.sha256()
        for images in self.splits().values():
            for array in (np.asarray(images.pictures), images.labels):
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()
