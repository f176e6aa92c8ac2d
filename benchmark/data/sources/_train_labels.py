"""Take the training labels from a file, such as what people called the images. Test images keep their own labels."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import MissingData, UserError, brief
from benchmark.base.limits import shown
from benchmark.base.names import unknown_name
from benchmark.base.units import counted
from benchmark.config.load import file_and_array
from benchmark.config.task import DataConfig
from benchmark.data.images import Loaded
from benchmark.data.sources import describe

SUFFIXES = (".npy", ".npz")
PICKLES = (".pt", ".pth", ".pkl", ".pickle")
FIELD = "data.train_labels"


@dataclass(frozen=True)
class LabelFile:
    """A file of labels, and the name of the array that is meant; empty where the file has one array alone."""

    path: Path
    array: str

    def read(self) -> NDArray[Any]:
        """Return the labels. Nothing in the file is executed."""
        if not os.path.isfile(self.path):  # noqa: PTH113 - a Path fails where a name is too long
            kind = "is no regular file" if self.exists else "does not exist"
            raise MissingData(f"{FIELD}: '{self.path}' {kind}; a path is relative to the task file or to --data-dir")
        try:
            with self.path.open("rb") as file:
                content = np.load(file, allow_pickle=False)
                found = content if isinstance(content, np.ndarray) else content[self.chosen(content.files)]
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"{FIELD}: '{self.path}' cannot be read ({brief(error)}); expected whole numbers, saved with numpy"
            ) from None
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise UserError(
                f"{FIELD}: '{self.path.name}' must have one whole number per training image, got {found.dtype} "
                f"{found.shape}"
            )
        return found

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path)  # noqa: PTH110 - as above

    def chosen(self, names: Sequence[str]) -> str:
        """Return which of the arrays is meant."""
        if self.array in names:
            return self.array
        if self.array:
            raise unknown_name(self.array, names, f"array in '{self.path.name}', which {FIELD} names:")
        if len(names) != 1:
            example = f"; name one: {self.path.name}:{names[0]}" if names else ""
            raise UserError(f"{FIELD}: '{self.path.name}' has {counted(len(names), 'array')}, expected one{example}")
        return names[0]


def label_file(config: DataConfig, data_dir: Path) -> LabelFile:
    """Return where the labels of a task lie. Raise UserError for a kind of file that is not read."""
    name, array = file_and_array(config.train_labels)
    path = data_dir / name
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise UserError(
            f"{FIELD}: '{path.name}' is a pickle, which can run code and is never read; if you trust it, convert it "
            f"once: python -c \"import numpy, torch; numpy.savez('{path.stem}.npz', "
            f"**torch.load('{path.name}', weights_only=False))\""
        )
    if suffix not in SUFFIXES:
        raise UserError(f"{FIELD}: expected FILE.npy or FILE.npz:ARRAY, got {shown(config.train_labels)}")
    return LabelFile(path, array)


def has_labels(config: DataConfig, data_dir: Path) -> bool:
    """Tell whether the training labels are there: those of the source, or those in the file that the task names."""
    return not config.train_labels or label_file(config, data_dir).exists


def with_hash(config: DataConfig, data_dir: Path) -> DataConfig:
    """Return the settings with the hash of the training labels, which identifies them wherever their file lies.

    Where the settings name the hash already, the file need not be there yet: a plan can do without.
    """
    if not config.train_labels:
        if config.train_labels_sha256:
            raise UserError(f"{FIELD}_sha256 needs {FIELD}, the file that it is of")
        return config
    if config.train_labels_sha256 and not has_labels(config, data_dir):
        return config
    sha256 = hash_of(label_file(config, data_dir).read())
    if config.train_labels_sha256 not in ("", sha256):
        raise UserError(
            f"{FIELD}: the labels in '{config.train_labels}' have the SHA-256 {sha256}, and {FIELD}_sha256 is another; "
            "name the file that is meant, or leave train_labels_sha256 out"
        )
    return replace(config, train_labels_sha256=sha256)


def hash_of(labels: NDArray[Any]) -> str:
    """Return the hash of the values, however many bytes their file spends on each."""
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()


def relabelled(loaded: Loaded, config: DataConfig, data_dir: Path) -> Loaded:
    """Return a data set whose training images, all of them, have the labels in the task's file."""
    labels = label_file(config, data_dir).read()
    if config.train_labels_sha256 not in ("", hash_of(labels)):
        raise UserError(f"{FIELD}: '{config.train_labels}' has changed since this was planned; run the command again")
    check(labels, loaded, config)
    given = labels.astype(np.int64)
    changed = float(np.mean(given != loaded.train.labels))
    return replace(loaded, train=replace(loaded.train, labels=given), labels_changed=changed)


def check(labels: NDArray[Any], loaded: Loaded, config: DataConfig) -> None:
    """Raise UserError unless there is one of the classes for each training image."""
    name, count = Path(config.train_labels).name, len(loaded.train)
    if len(labels) != count:
        raise UserError(
            f"{FIELD}: '{name}' has {counted(len(labels), 'label')}, and '{config.path or config.source}' has "
            f"{counted(count, 'training image')}; expected one for each, in their order, before any is held out"
        )
    classes = loaded.num_classes or describe(config).num_classes
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise UserError(
            f"{FIELD}: label {wrong[0]} of '{name}', counted from 0, is {labels[wrong[0]]}; expected a class from 0 to "
            f"{classes - 1}"
        )


def remark_on_labels(config: DataConfig, changed: float | None) -> str:
    """Return what a reader of the results should know of the training labels; empty where they are the source's own."""
    if not config.train_labels:
        return ""
    name = Path(config.train_labels).name
    if changed is None:
        return f"training labels from {name}; how many differ from those of the data set is not known yet"
    return f"training labels from {name}, {changed:.1%} differ from those of the data set"
