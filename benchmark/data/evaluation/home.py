"""Know the task whose classifiers are tried: its images, its classes, and what those are called."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.config.task import DataConfig
from benchmark.data.cache import Folders
from benchmark.data.classes import new_numbers
from benchmark.data.dataset import facts_of, form_of, load
from benchmark.data.images import Facts, Images
from benchmark.data.sources import get_source
from benchmark.data.sources._files import subfolders
from benchmark.data.sources.folder import class_names, own_path


@dataclass(frozen=True)
class Home:
    """The images of a task, and whether caches may be built for it."""

    data: DataConfig
    folders: Folders
    build: bool

    @cached_property
    def sha256(self) -> str:
        return load(self.data, self.folders, self.build)[1]

    @cached_property
    def test(self) -> Images:
        return load(self.data, self.folders, self.build)[0].test

    @cached_property
    def facts(self) -> Facts:
        return facts_of(self.data, load(self.data, self.folders, self.build)[0])

    @property
    def all_classes(self) -> int:
        """Return the number of classes, with those that are left out."""
        return self.facts.num_classes + len(self.data.leave_out)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Return the number of each class among those that are trained; −1 for the others."""
        return new_numbers(self.data, self.all_classes)

    def fit(self, other: DataConfig) -> DataConfig:
        """Return the settings of other images, decoded as those of the task where they are files."""
        if "cache_size" not in get_source(other).SETTINGS:
            return other
        channels, side, _ = self.facts.shape
        like = {"mean": (0.5,) * channels, "std": (0.5,) * channels, "channels": 0}
        return replace(other, image_size=side, cache_size=self.data.cache_size, **like)  # type: ignore[arg-type]

    def check_form(self, name: str, facts: Facts) -> None:
        """Raise UserError where other images do not fit into the network."""
        if (facts.shape, facts.floats) != (self.facts.shape, self.facts.floats):
            raise UserError(
                f"images: '{name}' has images of {form_of(facts)}, and the task of {form_of(self.facts)}; they must be "
                "alike (only image files are resized)"
            )


def class_folders(data: DataConfig, folders: Folders) -> Sequence[str] | None:
    """Return the names of the classes, in the order of their numbers; None where they have no folders."""
    if data.source == "folder":
        return class_names(data)
    return list(data.folders) or all_class_folders(data, folders)


def all_class_folders(data: DataConfig, folders: Folders) -> Sequence[str] | None:
    """Return the names of all class folders of the training images, also of those that the task does not use."""
    root = {"folder": own_path(data) if data.path else None, "imagenet": folders.data / "imagenet"}.get(data.source)
    if root is None:
        return None
    root = root / "train" if (root / "train").is_dir() else root
    return subfolders(root) if root.is_dir() else None
