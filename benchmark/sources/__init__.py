"""Where images come from: one file per source, each with `describe` (facts, no data needed) and `load`."""

import hashlib
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from benchmark.config import DataConfig
from benchmark.names import unknown_name

SOURCES = {
    "digits": "digits",
    "gaussians": "gaussians",
    "cifar10": "cifar",
    "cifar100": "cifar",
    "celeba": "planned",
    "imagenet": "planned",
}


@dataclass(frozen=True)
class Facts:
    """What can be said of a data set before it is there."""

    num_classes: int
    num_train: int
    num_test: int
    shape: tuple[int, int, int]


@dataclass(frozen=True)
class Images:
    """A split: uint8 or float32 images (N, C, H, W) and labels (N,)."""

    images: NDArray[Any]
    labels: NDArray[np.int64]

    def take(self, chosen: NDArray[np.int64]) -> "Images":
        return Images(self.images[chosen], self.labels[chosen])


@dataclass(frozen=True)
class Loaded:
    """The splits, and the exact posterior P(y|x) of the test images where the truth is known."""

    train: Images
    test: Images
    posterior: NDArray[np.float64] | None = None
    val: Images | None = None
    """The validation split that the data set itself provides, if any."""

    def subset(self, num_train: int, num_test: int) -> "Loaded":
        """Fixed random choices of images, the same for every seed; 0 = all."""
        train, test = chosen(len(self.train.labels), num_train), chosen(len(self.test.labels), num_test)
        posterior = None if self.posterior is None else self.posterior[test]
        return Loaded(self.train.take(train), self.test.take(test), posterior, self.val)

    def sha256(self) -> str:
        """Identifies the data: two machines with equal hashes trained and tested on the same images."""
        digest = hashlib.sha256()
        for split in (self.train, self.test, self.val):
            for array in () if split is None else (split.images, split.labels):
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def chosen(total: int, count: int) -> NDArray[np.int64]:
    if not count or count >= total:
        return np.arange(total)
    return np.sort(np.random.Generator(np.random.PCG64(count)).permutation(total)[:count])


class Source(Protocol):
    def describe(self, config: DataConfig) -> Facts: ...
    def load(self, config: DataConfig, data_dir: Path, *, download: bool) -> Loaded: ...


def get_source(name: str) -> Source:
    if name not in SOURCES:
        raise unknown_name(name, SOURCES, "data source")
    return cast(Source, importlib.import_module(f"benchmark.sources.{SOURCES[name]}"))


def describe(config: DataConfig) -> Facts:
    """The facts of a source after its subsets are taken."""
    facts = get_source(config.source).describe(config)
    return Facts(
        facts.num_classes,
        min(facts.num_train, config.train_images or facts.num_train),
        min(facts.num_test, config.test_images or facts.num_test) - config.test_holdout,
        facts.shape,
    )
