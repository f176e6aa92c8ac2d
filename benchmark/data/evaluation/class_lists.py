"""Bring the classes of other images to the numbers that they have in a task."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.data.evaluation.home import Home, all_class_folders, class_folders
from benchmark.data.images import Images
from benchmark.data.sources._evaluation import Layout, is_labelled_by_numbers

MISMATCH = "class lists that do not match"


def numbers_of(layout: Layout, home: Home, where: str) -> NDArray[np.int64]:
    """Return the task's number of each class of a folder of images; −1 for those that are not the task's."""
    names: Sequence[str] = layout.classes
    known, every = class_folders(home.data, home.folders), all_class_folders(home.data, home.folders)
    if is_labelled_by_numbers(layout) and not {*names} & {*(every or ())}:
        names = numbered_names(layout, home, where)
    if known is None:
        known = [str(number) for number in range(home.all_classes)]
    official = {name: number for number, name in enumerate(known)}
    if not official.keys() & set(names):
        raise UserError(
            f"{MISMATCH}: '{where}' has class folders such as '{names[0]}', and the task such as '{known[0]}'; none of "
            "either is among the others"
        )
    return np.array([home.numbers[official[name]] if name in official else -1 for name in names])


def numbered_names(layout: Layout, home: Home, where: str) -> list[str]:
    """Return the names that the class folders 0, 1, 2, … mean: those of all training classes in sorted order."""
    every = all_class_folders(home.data, home.folders)
    if every is None:
        every = [str(number) for number in range(home.all_classes)]
    if len(every) != len(layout.classes):
        raise UserError(
            f"{MISMATCH}: '{where}' has class folders 0 to {len(layout.classes) - 1}, and the training images "
            f"{counted(len(every), 'class', 'classes')}; by their numbers alone, they cannot be told apart"
        )
    return [every[int(name)] for name in layout.classes]


def remark_on(numbers: NDArray[np.int64], home: Home) -> str:
    """Say which classes are missing on either side."""
    others, there, count = int((numbers < 0).sum()), int((numbers >= 0).sum()), home.facts.num_classes
    remarks = []
    if others:
        of = counted(len(numbers), "class", "classes")
        remarks.append(f"{others:,} of {of} of the set {'is' if others == 1 else 'are'} not the task's and left out")
    if there < count:
        remarks.append(f"it has images of {there:,} of the {counted(count, 'class', 'classes')} of the task")
    return "; ".join(remarks)


def check_numbers(images: Images, home: Home, where: str) -> None:
    """Raise UserError where labels are no classes of the task."""
    lowest, highest, count = int(images.labels.min()), int(images.labels.max()), home.all_classes
    if highest >= count or lowest < 0:
        classes = f"{count} classes are 0 to {count - 1}"
        raise UserError(f"{MISMATCH}: '{where}' has labels {lowest} to {highest}, and the task's {classes}")


def check_same_classes(count: int, names: Sequence[str] | None, home: Home, where: str) -> None:
    """Raise UserError where the classes of another task are not those of this one."""
    if count != home.all_classes:
        raise UserError(f"{MISMATCH}: '{where}' has {count:,} classes, and the task {home.all_classes:,}")
    own = class_folders(home.data, home.folders)
    if names is not None and own is not None and list(names) != list(own):
        other, mine = next(pair for pair in zip(names, own, strict=True) if pair[0] != pair[1])
        raise UserError(f"{MISMATCH}: '{where}' has a class '{other}' where the task has '{mine}'")
