"""Open other images of the same classes."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import is_plain
from benchmark.config.evaluation import EvaluationConfig
from benchmark.data.evaluation.class_lists import (
    MISMATCH,
    check_numbers,
    check_same_classes,
    numbers_of,
    remark_on,
)
from benchmark.data.evaluation.corrupted_arrays import arrays_sha256, corrupted_arrays, is_corrupted_arrays
from benchmark.data.evaluation.home import Home, class_folders
from benchmark.data.evaluation.parts import EvaluationSet, Part
from benchmark.data.evaluation.places import names_task, open_files, open_task
from benchmark.data.images import Facts, Images
from benchmark.data.sources._evaluation import find_layout, is_arrays, section_parts

SHIFTED = "shifted"
Numbers = NDArray[np.int64]


def shifted_set(config: EvaluationConfig, home: Home) -> EvaluationSet:
    if names_task(config):
        return set_of_task(config, home)
    if is_corrupted_arrays(Path(config.images)):
        return set_of_corrupted_arrays(Path(config.images), home)
    return set_of_arrays(config, home) if is_arrays(config.images) else set_of_folders(config, home)


def set_of_task(config: EvaluationConfig, home: Home) -> EvaluationSet:
    """Return the test images of another task, without the classes that this one leaves out."""
    other = open_task(config, home)
    left_out = set(other.data.leave_out)
    names = class_folders(other.data, home.folders)
    check_same_classes(other.facts.num_classes + len(left_out), names, home, config.images)
    if left_out and left_out != set(home.data.leave_out):
        raise UserError(f"{MISMATCH}: data.leave_out of '{config.images}' is another than that of the task")
    numbers = np.arange(other.facts.num_classes) if left_out else home.numbers
    return EvaluationSet((part_of(other.test, numbers, config.images),), other.sha256)


def part_of(images: Images, numbers: Numbers, where: str, kind: str = "", severity: int | None = None) -> Part:
    """Return the images of the task's classes, by the number of each label in the task, as a part."""
    name, kept = f"{kind}-{severity}" if kind else SHIFTED, images.relabelled(numbers)
    if not is_plain(name):
        raise UserError(f"'{where}' has a corruption {shown(kind)}; rename it: a file of results is called after it")
    if not len(kept):
        raise UserError(f"{MISMATCH}: '{where}' has no image of the task's classes{f' in {name}' if kind else ''}")
    return Part(name, kept, kind.replace("_", " "), severity)


def set_of_corrupted_arrays(path: Path, home: Home) -> EvaluationSet:
    parts = []
    for name, severity, images in corrupted_arrays(path):
        shape = np.asarray(images.pictures).shape[1:]
        home.check_form(f"{path}/{name}.npy", Facts(0, 0, 0, (shape[0], shape[1], shape[2])))
        check_numbers(images, home, str(path))
        if images.labels.max() + 1 < home.all_classes:
            count = images.labels.max() + 1
            raise UserError(f"{MISMATCH}: '{path}' has {count:,} classes, and the task {home.all_classes:,}")
        parts.append(part_of(images, home.numbers, str(path), name, severity))
    return EvaluationSet(tuple(parts), arrays_sha256(path, home.folders.cache))


def set_of_arrays(config: EvaluationConfig, home: Home) -> EvaluationSet:
    arrays = open_files(config, home)
    check_numbers(arrays.test, home, config.images)
    return EvaluationSet((part_of(arrays.test, home.numbers, config.images),), arrays.sha256)


def set_of_folders(config: EvaluationConfig, home: Home) -> EvaluationSet:
    """Return the images of class folders; of corruptions a part for each kind and severity."""
    files = open_files(config, home)
    layout = find_layout(files.data)
    numbers = numbers_of(layout, home, config.images)
    parts = [
        part_of(images, numbers, config.images, section.kind, section.severity)
        for section, images in section_parts(files.test, layout)
    ]
    return EvaluationSet(tuple(parts), files.sha256, remark_on(numbers, home))
