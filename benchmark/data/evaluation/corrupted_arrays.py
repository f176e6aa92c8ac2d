"""Read the official CIFAR-10-C and CIFAR-100-C: `labels.npy`, and a file of mapped images for each corruption.

Each file has the test images five times, by severity.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief
from benchmark.base.hashes import file_sha256
from benchmark.base.units import counted
from benchmark.config.evaluation import SEVERITIES
from benchmark.data.images import Images
from benchmark.data.sources.arrays import channels_first

LABELS = "labels.npy"


def is_corrupted_arrays(path: Path) -> bool:
    """Tell whether a folder has the layout of CIFAR-10-C."""
    whole = any((path / f"{prefix}images.npy").exists() for prefix in ("", "test_"))
    return (path / LABELS).is_file() and not whole


def corrupted_arrays(path: Path) -> Iterator[tuple[str, int, Images]]:
    """Yield the name of each corruption, a severity and its images. Nothing is read before it is used."""
    labels = map_array(path / LABELS)
    per_severity = len(labels) // len(SEVERITIES) if labels.ndim == 1 and labels.dtype.kind in "iu" else 0
    if not per_severity or len(labels) % len(SEVERITIES):
        raise UserError(
            f"'{path / LABELS}': expected whole numbers, as many for each of {len(SEVERITIES)} severities, got "
            f"{labels.dtype} {labels.shape}"
        )
    if (labels.reshape(len(SEVERITIES), per_severity) != labels[:per_severity]).any():
        raise UserError(
            f"'{path / LABELS}': expected the same labels for each of {len(SEVERITIES)} severities, one severity after "
            "the other, got others"
        )
    for file in image_arrays(path):
        pictures = channels_first(map_array(file), f"'{file}'")
        if len(pictures) != len(labels):
            found = counted(len(pictures), "image")
            raise UserError(f"'{file}' has {found}, expected {len(labels):,}, one for each label in {LABELS}")
        for number, severity in enumerate(SEVERITIES):
            rows = slice(number * per_severity, (number + 1) * per_severity)
            yield file.stem, severity, Images.of(pictures[rows], labels[rows])


def image_arrays(path: Path) -> list[Path]:
    """Return the files of images, sorted. Raise UserError where there is none."""
    if found := sorted(file for file in path.glob("*.npy") if file.name != LABELS):
        return found
    raise UserError(f"'{path}' has {LABELS}, but no images; expected NAME.npy for each corruption")


def map_array(file: Path) -> NDArray[Any]:
    try:
        if not file.is_file():
            raise ValueError("it is not a regular file")  # opening a pipe would wait for its writer
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        raise UserError(f"'{file}' cannot be read as an npy file ({brief(error)}); unpack it again") from None
    return np.asarray(array)


def arrays_sha256(path: Path, cache: Path) -> str:
    """Return the hash of all files."""
    digest = hashlib.sha256()
    for file in (path / LABELS, *image_arrays(path)):
        digest.update(f"{file.name} {file_sha256(file, cache)}\n".encode())
    return digest.hexdigest()
