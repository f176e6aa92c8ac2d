"""A user's own images: train/ and test/ with one folder per class each, or the class folders alone.

val/ is the validation split if there is a test/ too, and the test split, as in ImageNet, if there is none. Where there
are no test images at all, data.test_share of the images are set apart for testing, once and for all.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from benchmark.config import DataConfig
from benchmark.errors import UserError
from benchmark.sources import Facts, Images, Loaded
from benchmark.sources._files import ImageFiles, read_class_folders, subfolders
from benchmark.units import counted

SETTINGS = ("path", "classes", "folders", "cache_size", "test_share", "channels")
CACHED = True
SPLITS = ("train", "val", "test")


def describe(config: DataConfig) -> Facts:
    loaded = load(config, Path())
    shape = (config.channels_read, config.image_size, config.image_size)
    return Facts(len(class_names(config)), len(loaded.train), len(loaded.test), shape)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    root, classes = own_path(config), class_names(config)
    if not (root / "train").is_dir():
        return divided(read_class_folders(root, classes, config), config)
    found = {name: read_class_folders(root / name, classes, config) for name in SPLITS if (root / name).is_dir()}
    if "test" not in found and "val" in found:
        return Loaded(found["train"], found["val"])
    if "test" not in found:
        return divided(found["train"], config)
    return Loaded(found["train"], found["test"], val=found.get("val"))


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    splits = load(config, data_dir).splits().values()
    return [Path(path) for images in splits for path in cast(ImageFiles, images.pictures).take(images.rows).paths]


def own_path(config: DataConfig) -> Path:
    if not config.path:
        raise UserError(f"data.path: source '{config.source}' needs the path of your data, e.g. path = \"my/images\"")
    if not Path(config.path).exists():
        raise UserError(f"data.path: '{config.path}' does not exist; a path in a task file is relative to it")
    return Path(config.path)


def class_names(config: DataConfig) -> list[str]:
    root = own_path(config)
    if not root.is_dir():
        raise UserError(f"data.path: '{root}' is no folder; source 'folder' reads class folders below one")
    root = root / "train" if (root / "train").is_dir() else root
    names = list(config.folders) or subfolders(root)
    if len(names) < 2 or (config.classes and len(names) != config.classes):
        expected = config.classes or "at least 2"
        raise UserError(
            f"'{root}' has {counted(len(names), 'class folder')}, expected {expected}: one folder per class"
        )
    return names


def divided(images: Images, config: DataConfig) -> Loaded:
    """A fixed random division, the same for every seed."""
    if not config.test_share:
        raise UserError(
            f"'{config.path}' has no test images of its own; set data.test_share, e.g. to 0.2, to set some apart"
        )
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(images))
    num_test = max(1, round(config.test_share * len(images)))
    return Loaded(images.take(np.sort(order[num_test:])), images.take(np.sort(order[:num_test])))
