"""Read Fashion-MNIST from IDX files: torchvision's FashionMNIST/raw, or Debian's package `dataset-fashion-mnist`."""

import gzip
import hashlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import MissingData, UserError, brief
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded

SETTINGS = ()
CACHED = True
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
"""Hashes of the unpacked files."""


def describe(config: DataConfig) -> Facts:
    return Facts(10, 60_000, 10_000, (1, 28, 28), download_bytes=30_878_645)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    if not all(path.is_file() for path in files(config, data_dir)):
        download(data_dir)
    train_images, train_labels, test_images, test_labels = (read_idx(path) for path in files(config, data_dir))
    return Loaded(Images.of(train_images[:, None], train_labels), Images.of(test_images[:, None], test_labels))


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    """Return the files in the first folder that has all of them, packed or not; else where they are expected."""
    own = data_dir / "FashionMNIST" / "raw"
    for folder, suffix in product((own, DEBIAN), ("", ".gz")):
        paths = [folder / f"{name}{suffix}" for name in SHA256]
        if all(path.is_file() for path in paths):
            return paths
    return [own / name for name in SHA256]


def download(data_dir: Path) -> None:
    from torchvision.datasets import FashionMNIST

    try:
        FashionMNIST(data_dir, download=True)
    except Exception as error:
        raise MissingData(
            f"no Fashion-MNIST in '{data_dir / 'FashionMNIST' / 'raw'}', and it could not be downloaded "
            f"({brief(error)}); install Debian's dataset-fashion-mnist, get the four files from "
            "https://github.com/zalandoresearch/fashion-mnist, or choose another folder with --data-dir"
        ) from None


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file: two zero bytes, type (8 = uint8), number of dimensions, big-endian 32-bit sizes, values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise UserError(f"'{path}' cannot be read ({error}); download it again") from None
    name = path.name.removesuffix(".gz")
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise UserError(f"'{path}' is not the official file (SHA-256 differs); download it again")
    shape = np.frombuffer(content, ">u4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
