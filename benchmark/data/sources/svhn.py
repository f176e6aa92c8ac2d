"""Read SVHN, cropped 32×32 digits, with torchvision: svhn/train_32x32.mat and test_32x32.mat."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.base.errors import MissingData, brief
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded

SETTINGS = ()
CACHED = True
FOLDER, FILES = "svhn", ("train_32x32.mat", "test_32x32.mat")


def describe(config: DataConfig) -> Facts:
    return Facts(10, 73_257, 26_032, (3, 32, 32), download_bytes=182_040_794 + 64_275_384)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    from torchvision.datasets import SVHN

    try:
        train, test = (SVHN(data_dir / FOLDER, split=split, download=True) for split in ("train", "test"))
    except Exception as error:
        raise MissingData(
            f"no complete SVHN in '{data_dir / FOLDER}', and it could not be downloaded ({brief(error)}); get "
            f"{' and '.join(FILES)} from http://ufldl.stanford.edu/housenumbers, or set another folder with --data-dir"
        ) from None
    return Loaded(Images.of(train.data, train.labels), Images.of(test.data, test.labels))


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    return [data_dir / FOLDER / name for name in FILES]
