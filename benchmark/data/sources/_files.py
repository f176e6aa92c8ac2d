"""Read image files: class folders, sizes and pixels, as torchvision's folder class and PIL transforms do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmark.base.errors import UserError, brief
from benchmark.config.task import DataConfig
from benchmark.data.images import Images

CACHE_TAG = "CACHEDIR.TAG"
"""The file that marks a folder of caches, a convention that backup programs know too."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class ImageFiles:
    """Image files that are decoded to size × size or, if `keeps_shape`, to their own shape with that shorter side."""

    paths: tuple[str, ...]
    channels: int
    size: int
    keeps_shape: bool

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        with open_image(self.paths[index]) as image:
            if image.mode.startswith(("I", "F")):
                raise ValueError("it has more than 8 bits per channel, which would be cut off; convert it to 8 bits")
            coloured = image.convert("RGB" if self.channels == 3 else "L")
            height, width = self.decoded_size(*coloured.size)
            pixels = np.asarray(coloured.resize((width, height), Image.Resampling.BILINEAR))
        return pixels.reshape(height, width, self.channels).transpose(2, 0, 1)

    def take(self, rows: NDArray[np.int64]) -> "ImageFiles":
        return replace(self, paths=tuple(self.paths[row] for row in rows))

    def read_sizes(self) -> NDArray[np.int64]:
        """Return height and width of each decoded image, read from the file's header."""
        sizes = []
        for path in self.paths:
            with open_image(path) as image:
                sizes.append(self.decoded_size(*image.size))
        return np.array(sizes, np.int64)

    def decoded_size(self, width: int, height: int) -> tuple[int, int]:
        if not self.keeps_shape:
            return self.size, self.size
        short, long = sorted((width, height))
        longer = int(self.size * long / short)
        return (self.size, longer) if width >= height else (longer, self.size)


@contextmanager
def open_image(path: str) -> Iterator[Image.Image]:
    """Open a file as a PIL image; any failure becomes an error of one line that names the file."""
    try:
        if not Path(path).is_file() and Path(path).exists():
            raise ValueError("it is not a regular file")  # opening a pipe would wait for its writer
        with Image.open(path) as image:
            yield image
    except Exception as error:
        raise UserError(
            f"'{path}' cannot be read as an image ({brief(error)}); replace it, or remove it from the set"
        ) from None


def image_files(paths: list[str], config: DataConfig) -> ImageFiles:
    if not config.image_size:
        raise UserError(f"data.image_size: images of '{config.source}' need a size, e.g. data.image_size = 224")
    return ImageFiles(tuple(paths), config.channels_read, config.cache_size or config.image_size, config.cache_size > 0)


def subfolders(root: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones and caches."""
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    return [name for name in names if not (root / name / CACHE_TAG).exists()]


def images_below(folder: Path) -> list[str]:
    """Return the paths of all images below a folder, at any depth, in torchvision's order.

    Links are followed; a link to a folder above it is an error.
    """
    chains: dict[Path, tuple[Path, ...]] = {}
    found = []
    for where, _, names in os.walk(folder, followlinks=True):
        real, above = Path(where).resolve(), chains.get(Path(where).parent, ())
        if real in above:
            raise UserError(f"through a link, '{where}' leads back to a folder above it; remove the link")
        chains[Path(where)] = (*above, real)
        found.append((where, sorted(name for name in names if name.lower().endswith(SUFFIXES))))
    return [f"{where}{os.sep}{name}" for where, names in sorted(found) for name in names]


def read_class_folders(root: Path, classes: list[str], config: DataConfig) -> Images:
    """Return the images of one folder per class; the label is the folder's position in `classes`."""
    folders = subfolders(root)
    if missing := [name for name in classes if name not in folders]:
        raise UserError(
            f"'{root}' has no folder for class '{missing[0]}' ({len(missing)} of {len(classes)} are missing); every "
            "split needs one folder per class"
        )
    if not config.folders and (extra := [name for name in folders if name not in classes]):
        raise UserError(f"'{root}' has a class folder '{extra[0]}' that the training images do not have; remove it")
    paths: list[str] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        inside = images_below(root / name)
        if not inside:
            raise UserError(f"class folder '{root / name}' has no image; add some ({', '.join(SUFFIXES)}) or remove it")
        paths += inside
        labels += [label] * len(inside)
    return Images.of(image_files(paths, config), np.array(labels))
