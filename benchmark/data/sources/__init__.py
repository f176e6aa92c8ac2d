"""Where images come from: one file per source, with `describe` (facts, no data needed), `load` and `files`."""

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from benchmark.config import DataConfig
from benchmark.errors import UserError
from benchmark.names import unknown_name
from benchmark.units import counted

SOURCES = {
    "digits": "digits",
    "gaussians": "gaussians",
    "cifar10": "cifar",
    "cifar100": "cifar",
    "svhn": "svhn",
    "fashion-mnist": "fashion_mnist",
    "celeba": "celeba",
    "imagenet": "imagenet",
    "folder": "folder",
    "arrays": "arrays",
}
OPTIONAL = ("path", "classes", "folders", "attribute", "cache_size", "test_share", "channels")
"""Settings that only some sources read; each of those names them in its SETTINGS."""


@dataclass(frozen=True)
class Facts:
    """What can be said of a data set before it is there."""

    num_classes: int
    num_train: int
    num_test: int
    shape: tuple[int, int, int]
    floats: bool = False
    """Pixels are numbers of any size, not 8-bit values."""
    download_bytes: int = 0
    """What would be downloaded where it is not there; 0 = nothing can be."""
    sha256: str = ""
    """Of the cache, where it is the same on every machine."""


class Pictures(Protocol):
    """Images (C, H, W) by number: an array (N, C, H, W), images of different sizes, or files still to be decoded."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Ragged:
    """Images of different sizes, one behind the other in a flat array."""

    flat: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    """(N, 2): height and width of each."""
    channels: int

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each image begins, and at last where all end."""
        return np.concatenate([[0], np.cumsum(self.channels * self.sizes.prod(axis=1))])

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        start, end = self.starts[index : index + 2]
        return self.flat[start:end].reshape(self.channels, *self.sizes[index])


@dataclass(frozen=True)
class Images:
    """A part of a data set: pictures, a label for each, and which of them take part."""

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


@dataclass(frozen=True)
class Loaded:
    """The splits, and the exact posterior P(y|x) of the test images where the truth is known."""

    train: Images
    test: Images
    posterior: NDArray[np.float64] | None = None
    val: Images | None = None
    """The validation split that the data set itself provides, if any."""
    num_classes: int = 0
    mean: tuple[float, ...] = ()
    """Of the training images by channel, where their cache says it."""
    std: tuple[float, ...] = ()

    def splits(self) -> dict[str, Images]:
        named = {"train": self.train, "test": self.test, "val": self.val}
        return {name: images for name, images in named.items() if images is not None}

    def subset(self, num_train: int, num_test: int, num_val: int = 0) -> "Loaded":
        """Fixed random choices of images, the same for every seed; 0 = all."""
        test = chosen(len(self.test), num_test)
        return replace(
            self,
            train=self.train.take(chosen(len(self.train), num_train)),
            test=self.test.take(test),
            posterior=None if self.posterior is None else self.posterior[test],
            val=None if self.val is None else self.val.take(chosen(len(self.val), num_val)),
        )

    def sha256(self) -> str:
        """Identifies images that lie in memory: machines with equal hashes trained and tested on the same ones."""
        digest = hashlib.sha256()
        for images in self.splits().values():
            for array in (np.asarray(images.pictures), images.labels):
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def chosen(total: int, count: int) -> NDArray[np.int64]:
    if not count or count >= total:
        return np.arange(total)
    return np.sort(np.random.Generator(np.random.PCG64(count)).permutation(total)[:count])


class Source(Protocol):
    SETTINGS: tuple[str, ...]
    CACHED: bool
    """Whether its images are decoded into a cache, or made in memory each time."""

    def describe(self, config: DataConfig) -> Facts: ...
    def load(self, config: DataConfig, data_dir: Path) -> Loaded:
        """Labels, and arrays or files still to be decoded; downloaded where that is possible and need be."""
        ...

    def files(self, config: DataConfig, data_dir: Path) -> Sequence[Path]:
        """What `load` reads, or folders whose date tells that it changed. Only of sources that are cached."""
        ...


def get_source(config: DataConfig) -> Source:
    """The module of a source; settings that it would not read are refused."""
    if config.source not in SOURCES:
        raise unknown_name(config.source, SOURCES, "data source")
    source = cast(Source, importlib.import_module(f"benchmark.sources.{SOURCES[config.source]}"))
    neutral = {field.name: field.default for field in fields(DataConfig)}
    for name in OPTIONAL:
        if name not in source.SETTINGS and getattr(config, name) != neutral[name]:
            raise UserError(f"data.{name} means nothing to source '{config.source}'; remove it")
    return source


def describe(config: DataConfig) -> Facts:
    """What a source says of itself; settings that contradict it are refused."""
    facts, name = get_source(config).describe(config), config.source
    channels, height, width = facts.shape
    if config.mean and len(config.mean) != channels:
        raise UserError(
            f"data.mean has {counted(len(config.mean), 'number')}, but '{name}' has {counted(channels, 'channel')}"
        )
    if config.image_size and (height, width) != (config.image_size, config.image_size):
        raise UserError(f"data.image_size = {config.image_size}, but '{name}' is {height}×{width}; set it to 0")
    return facts


def check_labels(loaded: Loaded, config: DataConfig) -> None:
    """Refuses what could not be trained on, before any image is decoded."""
    num_classes, name = describe(config).num_classes, config.path or config.source
    for split, images in loaded.splits().items():
        if not len(images):
            raise UserError(f"'{name}' has no {split} images")
        wrong = images.labels[(images.labels < 0) | (images.labels >= num_classes)]
        if len(wrong):
            raise UserError(
                f"'{name}' has a label {wrong[0]} among its {split} images; the labels of {num_classes} classes go "
                f"from 0 to {num_classes - 1}"
            )
    missing = np.flatnonzero(np.bincount(loaded.train.labels, minlength=num_classes) == 0)
    if len(missing):
        raise UserError(f"'{name}' has no training image of class {missing[0]}; labels count from 0")
