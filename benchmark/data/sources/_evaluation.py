"""Read the images of an evaluation set from a user's folder or arrays: test images alone, in one split.

A folder has class folders; or, as ImageNet-C, folders of kinds and severities with class folders in each, perhaps one
level deeper. A label numbers both: section · classes + class. `classes = 1` takes all images of a folder as one class.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.sources._files import SUFFIXES, image_files, images_below, subfolders
from benchmark.data.sources.arrays import array_files, channels_first, read_arrays, read_split

SETTINGS = ("path", "classes", "cache_size")
CACHED = True
SEVERITIES = ("1", "2", "3", "4", "5")
PREFIXES = ("", "test_")
"""Of the arrays `images` and `labels`."""


@dataclass(frozen=True)
class Section:
    """Class folders that lie in one folder; those of a corruption have its kind and severity."""

    root: Path
    kind: str = ""
    severity: int | None = None


@dataclass(frozen=True)
class Layout:
    """What a folder of images consists of."""

    sections: tuple[Section, ...]
    classes: tuple[str, ...]
    """Names of the class folders of all sections, sorted."""


def describe(config: DataConfig) -> Facts:
    if is_arrays(config.path):
        images = read_array_images(config)
        channels, height, width = np.asarray(images.pictures).shape[1:]
        return Facts(int(images.labels.max(initial=0)) + 1, 0, len(images), (channels, height, width))
    layout = find_layout(config)
    shape = (config.channels_read, config.image_size, config.image_size)
    return Facts(len(layout.sections) * len(layout.classes), 0, 0, shape)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    images = read_array_images(config) if is_arrays(config.path) else read_folders(config)
    return Loaded(images, images, test_alone=True)


def files(config: DataConfig, data_dir: Path) -> Sequence[Path]:
    """Return the class folders of corruptions, of which there are too many to look at each image; else the images."""
    if is_arrays(config.path):
        return array_files(Path(config.path))
    layout = find_layout(config)
    folders = [section.root / name for section in layout.sections for name in folders_in(section, config)]
    if layout.sections[0].kind:
        return folders
    return [Path(path) for folder in folders for path in images_below(folder)]


def folders_in(section: Section, config: DataConfig) -> list[str]:
    """Return the names of the class folders in a section; the folder itself where all images are one class."""
    return [""] if config.classes == 1 else subfolders(section.root)


def is_arrays(path: str) -> bool:
    return not Path(path).is_dir() or any(Path(path).glob("*.npy"))


def read_array_images(config: DataConfig) -> Images:
    arrays = read_arrays(Path(config.path))
    prefix = next((prefix for prefix in PREFIXES if f"{prefix}images" in arrays), "")
    if config.classes == 1 and f"{prefix}images" in arrays:
        return unlabelled(arrays[f"{prefix}images"], f"'{config.path}': {prefix}images")
    return read_split(arrays, prefix, config)


def unlabelled(pictures: NDArray[Any], where: str) -> Images:
    return Images.of(channels_first(pictures, where), np.zeros(len(pictures)))


def find_layout(config: DataConfig) -> Layout:
    """Return the sections and classes of a folder of images. Raise UserError where it has no class folder."""
    root = Path(config.path)
    if config.classes == 1:
        return Layout((Section(root),), ("",))
    sections = find_corruptions(root) or (Section(root),)
    classes = sorted({name for section in sections for name in subfolders(section.root)})
    if not classes:
        raise UserError(f"'{root}' has no class folders; expected one folder per class, an npz file or npy files")
    return Layout(sections, tuple(classes))


def find_corruptions(root: Path) -> tuple[Section, ...]:
    """Return a section for each kind and severity, where folders are sorted so: `fog/3` or `weather/fog/3`."""
    found, odd = [], []
    for name in subfolders(root):
        sections = [*kind_sections(root / name)]
        deeper = [each for inner in subfolders(root / name) for each in kind_sections(root / name / inner)]
        found += sections or deeper
        odd += [] if sections or deeper else [name]
    if found and odd:
        raise UserError(
            f"'{root}' has corruptions such as '{found[0].kind}', and beside them '{odd[0]}' without folders of "
            "severities 1 to 5; move that elsewhere"
        )
    names = [(section.kind, section.severity) for section in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"'{root}' has two folders of the corruption '{twice[0][0]}'; move one elsewhere")
    return tuple(found)


def kind_sections(folder: Path) -> Iterator[Section]:
    """Yield a section for each severity, if the folder is that of a corruption."""
    severities = subfolders(folder)
    if set(severities) <= set(SEVERITIES) and all(subfolders(folder / name) for name in severities):
        for name in severities:
            yield Section(folder / name, folder.name, int(name))


def read_folders(config: DataConfig) -> Images:
    layout = find_layout(config)
    positions = {name: position for position, name in enumerate(layout.classes)}
    paths: list[str] = []
    labels: list[int] = []
    for number, section in enumerate(layout.sections):
        for name in folders_in(section, config):
            inside = images_below(section.root / name)
            paths += inside
            labels += [number * len(positions) + positions[name]] * len(inside)
    if not paths:
        raise UserError(f"'{config.path}' has no images; expected some in its folders ({', '.join(SUFFIXES)})")
    return Images.of(image_files(paths, config), np.array(labels))


def section_parts(images: Images, layout: Layout) -> Iterator[tuple[Section, Images]]:
    """Yield the images of each section, labelled by their positions in the list of classes."""
    count = len(layout.classes)
    for number, section in enumerate(layout.sections):
        rows = np.flatnonzero(images.labels // count == number)
        part = images.take(rows)
        yield section, Images(part.pictures, part.labels % count, part.rows)


def is_labelled_by_numbers(layout: Layout) -> bool:
    """Tell whether class folders are called 0, 1, 2, … as in ImageNet-V2."""
    return {*layout.classes} == {*map(str, range(len(layout.classes)))}
