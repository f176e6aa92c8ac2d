"""Read ImageNet (ILSVRC 2012): imagenet/train and imagenet/val, one folder per class, named by its wnid.

The official validation images are the test split. `folders` selects some of the classes, as Imagenette does.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmark.base.errors import MissingData, UserError
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Loaded
from benchmark.data.sources import folder
from benchmark.data.sources._files import subfolders

SETTINGS = ("folders", "cache_size")
CACHED = True
NUM_CLASSES, NUM_TRAIN, NUM_TEST = 1000, 1_281_167, 50_000


def describe(config: DataConfig) -> Facts:
    classes = len(config.folders) or NUM_CLASSES
    share = classes / NUM_CLASSES
    shape = (config.channels_read, config.image_size, config.image_size)
    return Facts(classes, round(share * NUM_TRAIN), round(share * NUM_TEST), shape)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    root = data_dir / "imagenet"
    for name in ("train", "val"):
        if not (root / name).is_dir():
            raise MissingData(
                f"no '{root / name}': ImageNet cannot be downloaded by programs; get ILSVRC 2012 from "
                "https://image-net.org, unpack train/ and val/ there with one folder per class, or choose another "
                "folder with --data-dir"
            )
        if not subfolders(root / name):
            raise UserError(f"'{root / name}' has no class folders: sort its images into one folder per class (wnid)")
    return folder.load(replace(config, path=str(root), classes=len(config.folders) or NUM_CLASSES), root)


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    """Return the class folders: their dates change with their files, so that a million files need not be checked."""
    roots = [data_dir / "imagenet" / name for name in ("train", "val")]
    return [root / name for root in roots if root.is_dir() for name in config.folders or subfolders(root)] or roots
