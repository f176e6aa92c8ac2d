"""Leave classes out of a data set, and number the others anew."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Loaded


def new_numbers(config: DataConfig, num_classes: int) -> NDArray[np.int64]:
    """Return the new number of each class; −1 for those that are left out."""
    if wrong := [number for number in config.leave_out if number >= num_classes]:
        raise UserError(
            f"data.leave_out: {wrong[0]} is no class of '{config.path or config.source}'; its {num_classes} classes "
            f"are 0 to {num_classes - 1}"
        )
    left = num_classes - len(config.leave_out)
    if left < 2:
        raise UserError(
            f"data.leave_out leaves {counted(left, 'class', 'classes')} of {num_classes}, expected 2 or more"
        )
    kept = np.setdiff1d(np.arange(num_classes), config.leave_out)
    numbers = np.full(num_classes, -1)
    numbers[kept] = np.arange(left)
    return numbers


def leave_out(loaded: Loaded, config: DataConfig, num_classes: int) -> Loaded:
    """Return a data set without the images of some of its classes."""
    if loaded.posterior is not None:
        raise UserError(
            f"data.leave_out: the images of '{config.source}' come with the probability of every class; it cannot "
            "leave some out"
        )
    numbers = new_numbers(config, num_classes)
    splits = {name: images.relabelled(numbers) for name, images in loaded.splits().items()}
    return replace(loaded, num_classes=int(numbers.max()) + 1, **splits)  # type: ignore[arg-type]


def facts_without(config: DataConfig, facts: Facts) -> Facts:
    """Return the facts of a data set without the classes left out, as if all had the same number of images."""
    if not config.leave_out:
        return facts
    left = int(new_numbers(config, facts.num_classes).max()) + 1
    train, test = (round(count * left / facts.num_classes) for count in (facts.num_train, facts.num_test))
    return replace(facts, num_classes=left, num_train=train, num_test=test)
