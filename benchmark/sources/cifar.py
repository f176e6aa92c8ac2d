"""CIFAR-10 and CIFAR-100 from either official form: the binary version, or torchvision's python version."""

from pathlib import Path

import numpy as np

from benchmark.config import DataConfig
from benchmark.errors import MissingData, UserError
from benchmark.sources import Facts, Images, Loaded

SHAPE = (3, 32, 32)
BINARY_FILES = {
    "cifar10": ("cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin"),
    "cifar100": ("cifar-100-binary", ["train.bin"], "test.bin"),
}
LABEL_BYTES = {"cifar10": 1, "cifar100": 2}
"""CIFAR-100 stores the coarse label first; the fine one is the last label byte of both."""


def describe(config: DataConfig) -> Facts:
    return Facts(100 if config.source == "cifar100" else 10, 50_000, 10_000, SHAPE)


def load(config: DataConfig, data_dir: Path, *, download: bool) -> Loaded:
    folder, train_files, test_file = BINARY_FILES[config.source]
    if (data_dir / folder).is_dir():
        label_bytes = LABEL_BYTES[config.source]
        train = read_binary([data_dir / folder / name for name in train_files], label_bytes)
        return Loaded(train, read_binary([data_dir / folder / test_file], label_bytes))
    return load_torchvision(config.source, data_dir, download)


def read_binary(paths: list[Path], label_bytes: int) -> Images:
    """Records of label byte(s) followed by 3,072 pixels, channel by channel."""
    record = label_bytes + int(np.prod(SHAPE))
    parts = []
    for path in paths:
        if not path.is_file() or not path.stat().st_size or path.stat().st_size % record:
            raise UserError(f"'{path}' is missing or cut short; unpack the official binary version again")
        parts.append(np.fromfile(path, dtype=np.uint8).reshape(-1, record))
    rows = np.concatenate(parts)
    return Images(rows[:, label_bytes:].reshape(-1, *SHAPE), rows[:, label_bytes - 1].astype(np.int64))


def load_torchvision(source: str, data_dir: Path, download: bool) -> Loaded:
    from torchvision import datasets

    dataset = {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[source]
    splits = []
    for train in (True, False):
        try:
            found = dataset(data_dir, train=train, download=download)
        except Exception as error:
            folder = data_dir / BINARY_FILES[source][0]
            raise MissingData(
                f"no {source} in '{data_dir}', and it could not be downloaded ({type(error).__name__}); get the binary "
                f"version from https://www.cs.toronto.edu/~kriz/cifar.html and unpack it as '{folder}', or name "
                "another folder with --data-dir"
            ) from None
        images = np.ascontiguousarray(found.data.transpose(0, 3, 1, 2))
        splits.append(Images(images, np.asarray(found.targets, dtype=np.int64)))
    return Loaded(splits[0], splits[1])
