"""Read a user's own images: train/ and test/ with one folder per class each, or the class folders alone.

val/ is the validation split if there is a test/ too, and the test split, as in ImageNet, if there is none. Where there
are no test images at all, data.test_share of the images are kept for testing, the same ones for every seed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources._files import ImageFiles, read_class_folders, subfolders

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
        return split_off_test(read_class_folders(root, classes, config), config)
    splits = {name: read_class_folders(root / name, classes, config) for name in SPLITS if (root / name).is_dir()}
    if "test" not in splits and "val" in splits:
        return Loaded(splits["train"], splits["val"])
    if "test" not in splits:
        return split_off_test(splits["train"], config)
    return Loaded(splits["train"], splits["test"], val=splits.get("val"))


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
        raise UserError(f"data.path: '{root}' is not a folder; source 'folder' reads class folders below one")
    root = root / "train" if (root / "train").is_dir() else root
    names = list(config.folders) or subfolders(root)
    if len(names) < 2 or (config.classes and len(names) != config.classes):
        expected = config.classes or "at least 2"
        raise UserError(
            f"'{root}' has {counted(len(names), 'class folder')}, expected {expected}: one folder per class"
        )
    return names


def split_off_test(images: Images, config: DataConfig) -> Loaded:
    """Move data.test_share of the images to a test split, at random, but the same ones for every seed."""
    if not config.test_share:
        raise UserError(
            f"'{config.path}' has no test images; set data.test_share, e.g. to 0.2, to keep some images for testing"
        )
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(images))
    num_test = max(1, round(config.test_share * len(images)))
    return Loaded(images.take(np.sort(order[num_test:])), images.take(np.sort(order[:num_test])))
