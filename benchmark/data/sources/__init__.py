"""Find the sources of images: one file per source, with `describe` (needs no data), `load` and `files`.

A user's own file may bring further ones (`_own.py`).
"""

import importlib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.base.names import unknown_name
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Loaded
from benchmark.data.sources._own import OPTIONAL

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
    "vectors": "vectors.own",
    "breast-cancer": "vectors.embedded",
    "wine": "vectors.embedded",
    "digits-vectors": "vectors.embedded",
    "features": "vectors.features",
}


INSTEAD = {"labels": "training labels from a file are data.train_labels"}
"""What a setting may have been meant to be, where a source does not read it."""
EVALUATION = "evaluation-images"
"""The source of evaluation sets that lie in files. It is none for tasks."""


class Source(Protocol):
    SETTINGS: tuple[str, ...]
    CACHED: bool
    """Whether its images are decoded into a cache; else they are made in memory each time."""

    def describe(self, config: DataConfig) -> Facts: ...
    def load(self, config: DataConfig, data_dir: Path) -> Loaded:
        """Return labels, and arrays or files not yet decoded; download what is missing, where that is possible."""
        ...

    def files(self, config: DataConfig, data_dir: Path) -> Sequence[Path]:
        """Return the files that `load` reads, or folders whose date shows a change. Only for cached sources."""
        ...


def get_source(config: DataConfig) -> Source:
    """Return a source by its name; raise an error for settings that it would not read."""
    source = find_source(config.source)
    defaults = {field.name: field.default for field in fields(DataConfig)}
    for name in OPTIONAL:
        if name not in source.SETTINGS and getattr(config, name) != defaults[name]:
            other = f" ({INSTEAD[name]})" if name in INSTEAD else ""
            raise UserError(f"data.{name} means nothing to source '{config.source}'; remove it{other}")
    return source


def find_source(name: str) -> Source:
    if name in added.SOURCES:
        return cast(Source, added.SOURCES[name].value)
    if name == EVALUATION:
        return cast(Source, importlib.import_module("benchmark.data.sources._evaluation"))
    if name not in SOURCES:
        raise UserError(f"{unknown_name(name, [*SOURCES, *added.SOURCES], 'data source')}; {added.HOW}")
    return cast(Source, importlib.import_module(f"benchmark.data.sources.{SOURCES[name]}"))


def source_version(name: str) -> str:
    """Return the hash of what the user's file does that defines a source; empty for those of the suite."""
    return added.SOURCES[name].version if name in added.SOURCES else ""


def source_titles() -> dict[str, str]:
    """Return all sources by their names, with a line about each."""
    own = {name: (find_source(name).__doc__ or "").splitlines()[0] for name in SOURCES}
    return own | {name: source.title for name, source in added.SOURCES.items()}


def describe(config: DataConfig) -> Facts:
    """Return the facts of a source; raise an error for settings that contradict them."""
    facts, name = get_source(config).describe(config), config.source
    channels, height, width = facts.shape
    if config.mean and len(config.mean) != channels and name != EVALUATION:
        raise UserError(
            f"data.mean has {counted(len(config.mean), 'number')}, but '{name}' has {counted(channels, 'channel')}"
        )
    if config.image_size and (height, width) != (config.image_size, config.image_size):
        raise UserError(f"data.image_size = {config.image_size}, but '{name}' is {height}×{width}; set it to 0")
    return facts


def check_labels(loaded: Loaded, config: DataConfig) -> None:
    """Raise an error if the labels cannot be trained on, before any image is decoded."""
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
    if loaded.test_alone:
        return
    missing = np.flatnonzero(np.bincount(loaded.train.labels, minlength=num_classes) == 0)
    if len(missing):
        raise UserError(f"'{name}' has no training image of class {missing[0]}; labels count from 0")
