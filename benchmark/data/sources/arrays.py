"""Read a user's own arrays: an npz file, or a folder of npy files, with images and labels under these names.

`train_images`, `train_labels`, `test_images`, `test_labels` and, if there is a validation split, `val_…`; or `images`
and `labels` alone, of which data.test_share are kept for testing. Images are uint8, with channels last, first or none.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief
from benchmark.base.units import counted
from benchmark.config.task import CLASSES, DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources.folder import own_path, split_off_test

SETTINGS = ("path", "classes", "test_share")
CACHED = True


def describe(config: DataConfig) -> Facts:
    loaded = load(config, Path())
    highest = max(int(images.labels.max(initial=0)) for images in loaded.splits().values())
    _, channels, height, width = np.asarray(loaded.train.pictures).shape
    return Facts(config.classes or highest + 1, len(loaded.train), len(loaded.test), (channels, height, width))


def load(config: DataConfig, data_dir: Path) -> Loaded:
    arrays = read_arrays(own_path(config))
    if "images" in arrays:
        return split_off_test(read_split(arrays, "", config), config)
    train, test = (read_split(arrays, f"{name}_", config) for name in ("train", "test"))
    val = read_split(arrays, "val_", config) if "val_images" in arrays else None
    shapes = {np.asarray(images.pictures).shape[1:] for images in (train, test, val) if images is not None}
    if len(shapes) > 1:
        raise UserError(f"'{config.path}': all splits need images of one shape, got {', '.join(map(str, shapes))}")
    return Loaded(train, test, val=val)


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    return array_files(own_path(config))


def array_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.npy")) if path.is_dir() else [path]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        if odd := [file for file in array_files(path) if not file.is_file()]:
            raise ValueError(f"'{odd[0].name}' is not a regular file")  # opening a pipe would wait for its writer
        if path.is_dir():
            return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in array_files(path)}
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:
        raise UserError(f"'{path}' cannot be read as an npz file or a folder of npy files ({brief(error)})") from None


def read_split(arrays: dict[str, NDArray[Any]], prefix: str, config: DataConfig) -> Images:
    for name in (f"{prefix}images", f"{prefix}labels"):
        if name not in arrays:
            known = ", ".join(sorted(arrays)) or "nothing"
            raise UserError(f"'{config.path}' has no array '{name}'; it has {known}")
    images, labels = arrays[f"{prefix}images"], np.squeeze(arrays[f"{prefix}labels"])
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != len(images):
        raise UserError(
            f"'{config.path}': {prefix}labels must be one whole number per image, got {labels.dtype} {labels.shape} "
            f"for {counted(len(images), 'image')}"
        )
    if labels.max(initial=0) > CLASSES.most:
        raise UserError(
            f"'{config.path}': {prefix}labels must be numbers of classes, up to {CLASSES.most:,}, got {labels.max():,}"
        )
    return Images.of(channels_first(images, f"'{config.path}': {prefix}images"), labels)


def channels_first(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise UserError(
            f"{where} must be uint8 (N, H, W), (N, H, W, C) or (N, C, H, W), got {images.dtype} {images.shape}"
        )
    if images.ndim == 3:
        return images[:, None]
    if images.shape[3] in (1, 3):
        return images.transpose(0, 3, 1, 2)
    if images.shape[1] in (1, 3):
        return images
    raise UserError(f"{where} must have 1 or 3 channels, got shape {images.shape}")
