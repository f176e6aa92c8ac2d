"""Check a source of images: what it announces, what it loads, and whether that stays the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.base.units import counted
from benchmark.check.findings import Check, Finding, make_checks, require
from benchmark.config.task import DataConfig
from benchmark.data.cache import Folders
from benchmark.data.cache_build import open_cache
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources import check_labels, describe, get_source
from benchmark.train.preflight import is_small

MOST_IMAGES = 200
"""So many images of each split are looked at."""


@dataclass(frozen=True)
class SourceCandidate:
    """A source with the settings under which it is examined."""

    config: DataConfig
    data: Path
    """The folder of the data sets."""

    @cached_property
    def facts(self) -> Facts:
        return describe(self.config)

    @cached_property
    def loaded(self) -> Loaded:
        return self.load()

    def load(self) -> Loaded:
        return get_source(self.config).load(self.config, self.data)


def configured(name: str, settings: Mapping[str, Any], channels: int = 3) -> DataConfig:
    """Return the settings of a source. Raise UserError for settings that there are not."""
    normal = {"mean": [0.5] * channels, "std": [0.25] * channels}
    return build(DataConfig, {"source": name, **normal, **settings}, "--set data")


def announced(candidate: SourceCandidate) -> str:
    facts, splits = candidate.facts, candidate.loaded.splits()
    for name, count in {"train": facts.num_train, "test": facts.num_test}.items():
        require(count == len(splits[name]), f"it announces {count} {name} images and loads {len(splits[name])}")
    return ", ".join(f"{counted(len(images), 'image')} to {name}" for name, images in splits.items())


def labels(candidate: SourceCandidate) -> str:
    for name, images in candidate.loaded.splits().items():
        require(images.labels.dtype.kind in "iu", f"the {name} labels are {images.labels.dtype}, expected integers")
    check_labels(candidate.loaded, candidate.config)
    return counted(candidate.facts.num_classes, "class", "classes")


def pictures(candidate: SourceCandidate) -> str:
    """Look at the shape and the type of some images of each split."""
    facts, expected = candidate.facts, ("float32", "float16") if candidate.facts.floats else ("uint8",)
    for name, images in candidate.loaded.splits().items():
        for picture in some_pictures(images):
            # Images that are cropped later have their own height and width.
            found, wanted = (
                (picture.shape[:1], facts.shape[:1]) if candidate.config.cache_size else (picture.shape, facts.shape)
            )
            require(found == wanted, f"a {name} image has shape {found}, and it announces {wanted}")
            require(str(picture.dtype) in expected, f"a {name} image is {picture.dtype}, expected {expected[0]}")
            require(bool(np.isfinite(picture).all()), f"a {name} image is not finite")
    return expected[0]


def some_pictures(images: Images) -> Iterator[NDArray[Any]]:
    return (np.asarray(images.pictures[int(row)]) for row in images.rows[:MOST_IMAGES])


def places(candidate: SourceCandidate) -> None:
    """Require that every image has a place of its own: by its place in its split it is known in stored predictions."""
    splits = candidate.loaded.splits()
    for name, images in splits.items():
        require(len(images.labels) == len(images.rows), f"the {name} split has not one label for each image")
        inside = bool(((images.rows >= 0) & (images.rows < len(images.pictures))).all())
        require(inside, f"the {name} split names images that are not there")
    for name, images in splits.items():
        shared = [other for other in splits.values() if other.pictures is images.pictures]
        rows = np.concatenate([other.rows for other in shared])
        require(len(np.unique(rows)) == len(rows), f"an image of the {name} split is there twice")


def repeatable(candidate: SourceCandidate) -> None:
    again = candidate.load().splits()
    for name, images in candidate.loaded.splits().items():
        other = again[name]
        require(bool(np.array_equal(images.labels, other.labels)), f"the {name} labels differ from call to call")
        pairs = zip(some_pictures(images), some_pictures(other), strict=True)
        same = all(np.array_equal(first, second) for first, second in pairs)
        require(same, f"the {name} images differ from call to call; fix the seed of what it draws")


def posterior(candidate: SourceCandidate) -> str:
    known = candidate.loaded.posterior
    if known is None:
        return "not known"
    expected = (len(candidate.loaded.test), candidate.facts.num_classes)
    require(known.shape == expected, f"it has shape {known.shape}, expected {expected}")
    require(bool(np.allclose(known.sum(axis=1), 1)) and bool((known >= 0).all()), "its rows are no probabilities")
    return "known"


def cached(candidate: SourceCandidate) -> str:
    config = candidate.config
    if not get_source(config).CACHED:
        return "made in memory, not cached"
    files = get_source(config).files(config, candidate.data)
    require(bool(files), "files() names no file; without one the cache would never notice a change")
    require(all(path.exists() for path in files), "files() names a file that does not exist")
    if not is_small(config, Folders(candidate.data, candidate.data)):
        return "not tried, as the files are large; `prepare` does it"
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        places = [Folders(candidate.data, Path(folder)) for folder in (first, second)]
        hashes = {open_cache(config, place, tell=lambda text: None)[1] for place in places}
    require(len(hashes) == 1, "two caches of it differ")
    return f"sha256 {hashes.pop()[:12]}"


CHECKS: dict[str, Check[SourceCandidate]] = {
    "as many images as it announces": announced,
    "labels in range, each class among the training images": labels,
    "images as it announces them": pictures,
    "every image has a place of its own": places,
    "the same images every time": repeatable,
    "the posterior is a distribution, where it is known": posterior,
    "can be cached": cached,
}


def source_findings(name: str, settings: Mapping[str, Any], data: Path) -> Iterator[Finding]:
    """Make every check of a source."""
    config, first = configured(name, settings), "can be loaded"
    try:
        channels = get_source(config).describe(config).shape[0]
        candidate = SourceCandidate(config if "mean" in settings else configured(name, settings, channels), data)
        size = "×".join(map(str, candidate.facts.shape))
        splits = ", ".join(candidate.loaded.splits())
    except UserError as error:
        yield Finding(first, False, str(error))
        return
    yield Finding(first, True, f"images of {size}: {splits}")
    yield from make_checks(CHECKS, candidate)
