"""Small data sets in the exact layouts in which the real ones are distributed."""

import gzip
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

WNIDS = ("n01440764", "n02102040", "n02979186")
SIZES = ((40, 30), (30, 44), (36, 36), (31, 75), (90, 33))
"""Widths and heights, upright and lying."""


def picture(width: int, height: int, seed: int, channels: int = 3) -> Image.Image:
    """Smooth enough to survive JPEG, different for every seed."""
    random = np.random.default_rng(seed)
    small = Image.fromarray(random.integers(0, 256, (5, 6, 3), dtype=np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC).convert("RGB" if channels == 3 else "L")


def write_class_folders(root: Path, per_class: int, classes: tuple[str, ...] = WNIDS, suffix: str = ".JPEG") -> None:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for index in range(per_class):
            seed = 1000 * label + index + 7 * len(root.name)
            picture(*SIZES[seed % len(SIZES)], seed).save(root / name / f"{name}_{index}{suffix}")


def write_levels(root: Path, levels: Mapping[str, int], sizes: tuple[tuple[int, int], ...] = ((9, 9), (14, 8))) -> None:
    """Images of one grey level for each class folder, so that every pixel tells whose image it is."""
    for name, level in levels.items():
        (root / name).mkdir(parents=True)
        for index, (width, height) in enumerate(sizes):
            Image.new("RGB", (width, height), (level, level, level)).save(root / name / f"{index}.png")


def write_corrupted_arrays(
    folder: Path, labels: np.ndarray, names: tuple[str, ...] = ("fog", "jpeg_compression")
) -> None:
    """The layout of CIFAR-10-C: for each corruption the images of all severities, one severity after the other."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    np.save(folder / "labels.npy", np.tile(labels, 5))
    for name in names:
        np.save(folder / f"{name}.npy", random.integers(0, 256, (5 * len(labels), 8, 8, 3), dtype=np.uint8))


def write_arrays(path: Path, train_labels: Sequence[int], test_labels: Sequence[int], seed: int = 0) -> Path:
    """Arrays of a user: training and test images of 8×8 pixels."""
    random, arrays = np.random.default_rng(seed), {}
    for split, labels in (("train", train_labels), ("test", test_labels)):
        arrays[f"{split}_images"] = random.integers(0, 256, (len(labels), 8, 8, 3), dtype=np.uint8)
        arrays[f"{split}_labels"] = np.array(labels)
    np.savez(path, **arrays)
    return path


def write_imagenet(data_dir: Path, per_class: int = 6) -> Path:
    for split in ("train", "val"):
        write_class_folders(data_dir / "imagenet" / split, per_class)
    return data_dir / "imagenet"


def write_celeba(data_dir: Path, counts: tuple[int, int, int] = (12, 4, 6)) -> Path:
    """Train, validation, test; every third face is attractive."""
    root = data_dir / "celeba"
    (root / "img_align_celeba").mkdir(parents=True)
    names = [f"{number:06}.jpg" for number in range(1, sum(counts) + 1)]
    parts = np.repeat([0, 1, 2], counts)
    rows = []
    for number, name in enumerate(names):
        picture(44, 54, number).save(root / "img_align_celeba" / name, quality=95)
        rows.append(f"{name} {'1' if number % 2 else '-1':>2} -1 {' 1' if number % 3 == 0 else '-1'}")
    header = "5_o_Clock_Shadow Arched_Eyebrows Attractive "
    (root / "list_attr_celeba.txt").write_text("\n".join([str(len(names)), header, *rows]) + "\n")
    pairs = zip(names, parts, strict=True)
    (root / "list_eval_partition.txt").write_text("".join(f"{name} {part}\n" for name, part in pairs))
    return root


def write_cifar(folder: Path, label_bytes: int, files: dict[str, int], classes: int = 10) -> np.ndarray:
    """The binary version; the label repeats in the first pixel."""
    folder.mkdir(parents=True)
    random, rows = np.random.Generator(np.random.PCG64(0)), []
    for name, count in files.items():
        part = random.integers(0, 256, (count, label_bytes + 3072), dtype=np.uint8)
        part[:, label_bytes - 1] = np.arange(count) % classes
        part[:, label_bytes] = part[:, label_bytes - 1]
        part.tofile(folder / name)
        rows.append(part)
    return np.concatenate(rows)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_fashion_mnist(folder: Path, packed: bool) -> dict[str, bytes]:
    """Returns the unpacked content of each file."""
    random = np.random.default_rng(0)
    contents = {}
    for name, count in (("train", 12), ("t10k", 5)):
        contents[f"{name}-images-idx3-ubyte"] = idx(random.integers(0, 256, (count, 28, 28)))
        contents[f"{name}-labels-idx1-ubyte"] = idx(np.arange(count) % 10)
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / f"{name}{'.gz' if packed else ''}").write_bytes(gzip.compress(content) if packed else content)
    return contents
