"""Read a user's own vectors: arrays (npz, npy), or tables (CSV, TSV, JSON Lines, Parquet, Feather).

One file, of which data.test_share are kept for testing; files for training and testing (data.path, data.test_path); or
a folder with train, test and perhaps val. What is measured, such as medians, is measured from the training vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources.arrays import array_files
from benchmark.data.sources.folder import split_off_test
from benchmark.data.sources.vectors.columns import Part, as_pictures, label_kind, quoted
from benchmark.data.sources.vectors.encoding import Encoding
from benchmark.data.sources.vectors.parts import WHOLE, Parts, data_files, read_parts

SETTINGS = ("path", "test_path", "classes", "test_share", "labels", "columns", "missing", "constant", "one_hot")
CACHED = True
FEWEST = 2
"""Training vectors: BatchNorm refuses one alone, and so does a standard deviation."""
Stamps = tuple[tuple[str, int, int], ...]


def describe(config: DataConfig) -> Facts:
    loaded = load(config, Path())
    columns = np.asarray(loaded.train.pictures).shape[1]
    return Facts(loaded.num_classes, len(loaded.train), len(loaded.test), (columns, 1, 1), floats=True)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    status = [(path, path.stat()) for path in files(config, data_dir)]
    return load_as_of(tuple((str(path), each.st_mtime_ns, each.st_size) for path, each in status), config)


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    return [file for path in data_files(config).values() for file in array_files(path)]


@lru_cache(maxsize=1)
def load_as_of(stamps: Stamps, config: DataConfig) -> Loaded:
    """Load once for each state of the files, as facts are asked for several times."""
    parts = read_parts(config)
    check_parts(parts, config)
    parts = {name: in_order(part, next(iter(parts.values())).names) for name, part in parts.items()}
    classes = class_values(parts, config)
    numbered = {name: Images.of(part.values, np.searchsorted(classes, part.labels)) for name, part in parts.items()}
    split = split_off_test(numbered[WHOLE], config) if WHOLE in parts else loaded_of(numbered)
    if len(split.train) < FEWEST:
        rows = counted(len(split.train), "row")
        raise UserError(f"'{config.path}' has {rows} to train on, expected {FEWEST} or more")
    check_trained(split.train, classes, config)
    encoding = Encoding.fit(parts[WHOLE if WHOLE in parts else "train"], split.train.rows, config)
    encoded = {name: as_pictures(encoding.encode(part)) for name, part in parts.items()}
    vectors = {
        name: replace(images, pictures=encoded[WHOLE if WHOLE in parts else name])
        for name, images in split.splits().items()
    }
    return loaded_of(vectors, len(classes))


def loaded_of(splits: Mapping[str, Images], num_classes: int = 0) -> Loaded:
    return Loaded(splits["train"], splits["test"], val=splits.get("val"), num_classes=num_classes)


def check_parts(parts: Parts, config: DataConfig) -> None:
    """Refuse a test split that is missing or there twice, and splits that do not fit together."""
    if WHOLE in parts and not config.test_share:
        raise UserError(
            f"'{config.path}' has nothing to test on; set data.test_share, e.g. to 0.2, to keep some rows for testing, "
            "or name another file in data.test_path"
        )
    if WHOLE not in parts and config.test_share:
        raise UserError(f"data.test_share means nothing where '{config.path}' has a test split; remove it")
    first = next(iter(parts.values()))
    for part in parts.values():
        check_same_columns(first, part)


def check_same_columns(first: Part, other: Part) -> None:
    ours, theirs = ([*part.names, *part.texts] for part in (first, other))
    for name in (*ours, *theirs):
        if (name in ours) != (name in theirs):
            has, lacks = (first, other) if name in ours else (other, first)
            raise UserError(f"{lacks.where} has no {quoted(name)}, which {has.where} has; both need the same columns")
    for name in ours:
        if (name in first.texts) != (name in other.texts):
            raise UserError(f"{other.where}: {quoted(name)} is text in one file and numbers in the other")


def in_order(part: Part, names: Sequence[str]) -> Part:
    """Return a part with its columns of numbers in the order of the first one."""
    if list(part.names) == list(names):
        return part
    return replace(part, values=part.values[:, [part.names.index(name) for name in names]], names=names)


def class_values(parts: Parts, config: DataConfig) -> NDArray[Any]:
    """Return the classes of all splits in sorted order: their places are their numbers."""
    kinds = {label_kind(part.labels, part.where) for part in parts.values()}
    if len(kinds) > 1:
        raise UserError(f"'{config.path}': the labels of one split are numbers, and those of another are text")
    classes = np.unique(np.concatenate([part.labels for part in parts.values()]))
    if len(classes) < 2 or (config.classes and len(classes) != config.classes):
        expected = config.classes or "2 or more"
        raise UserError(f"'{config.path}' has {counted(len(classes), 'class', 'classes')}, expected {expected}")
    return classes


def check_trained(train: Images, classes: NDArray[Any], config: DataConfig) -> None:
    missing = np.flatnonzero(np.bincount(train.labels, minlength=len(classes)) == 0)
    if len(missing):
        raise UserError(f"'{config.path}': class {shown(classes[missing[0]].item())} is missing from the training rows")
