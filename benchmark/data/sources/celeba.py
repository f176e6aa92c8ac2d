"""Read CelebA, aligned and cropped: celeba/ as distributed, one attribute as the class, the official split."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmark.base.errors import MissingData, UserError, brief
from benchmark.base.names import match_name
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources._files import image_files

SETTINGS = ("attribute", "cache_size")
CACHED = True
ATTRIBUTES, PARTITION, FACES = "list_attr_celeba.txt", "list_eval_partition.txt", "img_align_celeba"


def describe(config: DataConfig) -> Facts:
    shape = (config.channels_read, config.image_size, config.image_size)
    return Facts(2, 162_770, 19_962, shape, download_bytes=1_494_710_798)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    if not all(path.exists() for path in files(config, data_dir)):
        download(data_dir)
    attributes, partition, faces = files(config, data_dir)
    labels, parts = read_attribute(attributes, config.attribute), read_partition(partition)
    if labels.keys() != parts.keys():
        odd = sorted(labels.keys() ^ parts.keys())[0]
        raise UserError(f"'{attributes}' and '{partition}' do not list the same images: '{odd}' is only in one of them")
    existing = {entry.name for entry in os.scandir(faces)}
    if missing := sorted(labels.keys() - existing):
        raise UserError(
            f"'{attributes}' lists '{missing[0]}', which is not in '{faces}' ("
            f"{len(missing)} of {counted(len(labels), 'image')} missing); unpack img_align_celeba.zip again"
        )
    splits = []
    for number in (0, 1, 2):
        names = [name for name, part in parts.items() if part == number]
        files_of_split = image_files([str(faces / name) for name in names], config)
        splits.append(Images.of(files_of_split, np.array([labels[name] for name in names])))
    return Loaded(splits[0], splits[2], val=splits[1])


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    return [data_dir / "celeba" / name for name in (ATTRIBUTES, PARTITION, FACES)]


def download(data_dir: Path) -> None:
    """Download the files with torchvision from their authors' server, which does not always allow it."""
    from torchvision.datasets import CelebA

    try:
        CelebA(str(data_dir), download=True)
    except Exception as error:
        raise MissingData(
            f"no CelebA in '{data_dir / 'celeba'}', and it could not be downloaded ({brief(error)}); put "
            f"{ATTRIBUTES}, {PARTITION} and {FACES}/ there, from https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html, or "
            "choose another folder with --data-dir"
        ) from None


def read_attribute(path: Path, attribute: str) -> dict[str, int]:
    """Return 0 or 1 for each image name. The file begins with the number of images, then a line of attributes."""
    lines, names = lines_of(path), attribute_names(path)
    column = names.index(match_name(attribute, names, f"attribute in '{path}':"))
    labels = {}
    for number, line in enumerate(lines[2:], start=3):
        words = line.split()
        if len(words) != 1 + len(names) or words[1 + column] not in ("1", "-1"):
            raise UserError(f"'{path}' line {number}: expected an image name and {len(names)} times 1 or -1")
        labels[words[0]] = int(words[1 + column] == "1")
    if not lines[0].strip().isdigit() or int(lines[0]) != len(labels):
        raise UserError(f"'{path}' says it lists {lines[0].strip()} images, but lists {len(labels)}; download it again")
    return labels


def attribute_names(path: Path) -> list[str]:
    """Return the names of all attributes: the second line of their file."""
    lines = lines_of(path)
    return lines[1].split() if len(lines) > 1 else []


def read_partition(path: Path) -> dict[str, int]:
    """Return the split of each image name: 0 is training, 1 validation, 2 test."""
    rows = [line.split() for line in lines_of(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or row[1] not in ("0", "1", "2"):
            raise UserError(f"'{path}' line {number}: expected an image name and 0, 1 or 2")
    return {name: int(part) for name, part in rows}


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UserError(f"'{path}' is not a text file; download it again") from None
