"""Read how many people called each test image what, and make shares of the counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.data.evaluation.class_lists import MISMATCH
from benchmark.data.evaluation.tables import Arrays, read_table


def read_counts(file: str, num_images: int, num_classes: int) -> NDArray[np.float64]:
    """Return the counts in a file, (images, classes)."""
    counts = choose_counts(read_table(file), num_classes, file)
    if counts.shape[1] != num_classes:
        raise UserError(f"{MISMATCH}: '{file}' has counts of {counts.shape[1]:,} classes, the task {num_classes:,}")
    if len(counts) != num_images:
        raise UserError(
            f"file: '{file}' has counts of {counted(len(counts), 'image')}, expected those of all {num_images:,} test "
            "images"
        )
    numbers = counts.astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0)).all(axis=1)
    if wrong.any():
        raise UserError(f"file: '{file}': the counts of image {wrong.argmax()} must be numbers from 0 on")
    return numbers


def choose_counts(arrays: Arrays, num_classes: int, file: str) -> NDArray[Any]:
    """Return the one table of numbers; of several the one with a column for each class, of those the whole numbers.

    The columns of a csv file are a table together.
    """
    if file.lower().endswith(".csv"):
        arrays = {"columns": np.column_stack(list(arrays.values()))}
    tables = {name: array for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "iuf"}
    fitting = {name: array for name, array in tables.items() if array.shape[1] == num_classes}
    whole = {name: array for name, array in fitting.items() if array.dtype.kind in "iu"}
    for found in (tables, fitting, whole):
        if len(found) == 1:
            return next(iter(found.values()))
    known = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
    raise UserError(f"file: '{file}' needs one table of counts (images, {num_classes} classes); it has {known}")


def posterior_of(
    counts: NDArray[np.float64], ids: NDArray[np.int32], left_out: Sequence[int], file: str
) -> NDArray[np.float64]:
    """Return the shares counts / Σ counts of the images with these numbers, over the classes that are not left out."""
    chosen = np.delete(counts[ids], list(left_out), axis=1)
    totals = chosen.sum(axis=1, keepdims=True)
    if not totals.all():
        image = ids[int((totals[:, 0] == 0).argmax())]
        raise UserError(f"file: '{file}': nobody gave test image {image} a class of the task; every row needs people")
    return np.asarray(chosen / totals)
