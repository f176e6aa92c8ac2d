"""Read CIFAR-10 and CIFAR-100 from either official form: the binary version, or torchvision's python version."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.base.errors import MissingData, UserError, brief
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded

SETTINGS = ()
CACHED = True
SHAPE = (3, 32, 32)
BINARY_FILES = {
    "cifar10": ("cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], "test_batch.bin"),
    "cifar100": ("cifar-100-binary", ["train.bin"], "test.bin"),
}
MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    "train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
    "test.bin": "4499cfba6c016c1be1438163640a0898",
}
ANNOUNCED = {
    "cifar10": (10, 170_498_071, "2fa4bacb1b1d257e63b4ec074d471f64e9feef44bc3b5b32efaba32662317f28"),
    "cifar100": (100, 169_001_437, "5848bd89d3a58fba49de50c85303281ff51f1663ad8e4f6ea7d7b90a7a491215"),
}
"""Classes, size of the python version's archive, hash of the cache."""
LABEL_BYTES = {"cifar10": 1, "cifar100": 2}
"""CIFAR-100 stores the coarse label first; the fine one is the last label byte of both."""


def describe(config: DataConfig) -> Facts:
    classes, download, sha256 = ANNOUNCED[config.source]
    return Facts(classes, 50_000, 10_000, SHAPE, download_bytes=download, sha256=sha256)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    folder, train_files, test_file = BINARY_FILES[config.source]
    if (data_dir / folder).is_dir():
        label_bytes = LABEL_BYTES[config.source]
        train = read_binary([data_dir / folder / name for name in train_files], label_bytes)
        return Loaded(train, read_binary([data_dir / folder / test_file], label_bytes))
    return load_torchvision(config.source, data_dir)


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    folder, train_files, test_file = BINARY_FILES[config.source]
    if (data_dir / folder).is_dir():
        return [data_dir / folder / name for name in (*train_files, test_file)]
    python = torchvision_class(config.source)
    return [data_dir / python.base_folder / name for name, _ in python.train_list + python.test_list]


def read_binary(paths: list[Path], label_bytes: int) -> Images:
    """Read records of label byte(s) followed by 3,072 pixels, channel by channel; check the MD5 of each file."""
    record = label_bytes + int(np.prod(SHAPE))
    parts = []
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != MD5[path.name]:
            raise UserError(
                f"'{path}' is missing, cut short or changed (its MD5 is not that of the official file); unpack the "
                "official binary version again"
            )
        parts.append(np.frombuffer(content, np.uint8).reshape(-1, record))
    rows = np.concatenate(parts)
    return Images.of(rows[:, label_bytes:].reshape(-1, *SHAPE), rows[:, label_bytes - 1])


def torchvision_class(source: str) -> Any:
    from torchvision import datasets

    return {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[source]


def load_torchvision(source: str, data_dir: Path) -> Loaded:
    try:
        parts = [torchvision_class(source)(data_dir, train=train, download=True) for train in (True, False)]
    except Exception as error:
        folder = data_dir / BINARY_FILES[source][0]
        raise MissingData(
            f"no {source} in '{data_dir}', and it could not be downloaded ({brief(error)}); get the binary "
            f"version from https://www.cs.toronto.edu/~kriz/cifar.html and unpack it as '{folder}', or choose "
            "another folder with --data-dir"
        ) from None
    train, test = (Images.of(part.data.transpose(0, 3, 1, 2), part.targets) for part in parts)
    return Loaded(train, test)
