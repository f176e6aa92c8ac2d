"""Read the groups of test images: attributes of celeba, or the columns of a user's file."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import MissingData, UserError
from benchmark.base.limits import shown
from benchmark.base.names import match_name
from benchmark.base.units import counted
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.task import DataConfig
from benchmark.data.evaluation.tables import Arrays, read_table
from benchmark.data.sources import celeba

MOST_VALUES = 100
MOST_LETTERS = 100
"""Of the name of a column, and of a value."""
TEST = 2
"""The number of the test split in celeba's list of splits."""


def read_groups(config: EvaluationConfig, data: DataConfig, data_dir: Path, num_images: int) -> Arrays:
    """Return the value of every test image in each column."""
    found = file_columns(config) if config.file else attributes(config, data, data_dir)
    for name, column in found.items():
        if column.ndim != 1 or len(column) != num_images:
            raise UserError(
                f"groups: column '{name}' has the shape {column.shape}, expected a value for each of the "
                f"{num_images:,} test images"
            )
    return {name: checked(name, column) for name, column in found.items()}


def file_columns(config: EvaluationConfig) -> Arrays:
    arrays = read_table(config.file)
    if not arrays:
        raise UserError(f"file: '{config.file}' has no columns")
    wanted = [match_name(name, arrays, f"column of '{config.file}':") for name in config.columns] or list(arrays)
    return {name: arrays[name] for name in wanted}


def attributes(config: EvaluationConfig, data: DataConfig, data_dir: Path) -> Arrays:
    """Return attributes of the test images of celeba, as yes or no."""
    if data.source != "celeba":
        raise UserError(
            f"columns without a file are attributes of celeba, and the task has images of '{data.source}'; give a file "
            "with a column for each grouping"
        )
    listed, partition, _ = celeba.files(data, data_dir)
    if not (listed.is_file() and partition.is_file()):
        raise MissingData(f"no '{listed}' with '{partition.name}' beside it, in which the attributes are listed")
    known, parts = celeba.attribute_names(listed), celeba.read_partition(partition)
    names = [match_name(name, known, f"attribute in '{listed}':") for name in config.columns]
    images = [image for image, part in parts.items() if part == TEST]
    words = np.array(["no", "yes"])
    found = {name: celeba.read_attribute(listed, name) for name in names}
    for values in found.values():
        if unlisted := [image for image in images if image not in values]:
            raise UserError(f"'{listed}' does not list '{unlisted[0]}', which is in '{partition}'; unpack both again")
    return {name: words[[values[image] for image in images]] for name, values in found.items()}


def checked(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as text or whole numbers. Raise UserError where its values are no groups."""
    if not can_be_shown(name):
        raise UserError(f"groups: a column is called {shown(name)}; give it a name that a table can show")
    if column.dtype.kind == "b":
        column = np.where(column, "yes", "no")
    if column.dtype.kind not in "iuU":
        raise UserError(f"groups: column '{name}' must be text or whole numbers, got {column.dtype}")
    values = np.unique(column)
    if len(values) > MOST_VALUES:
        got = counted(len(values), "value")
        raise UserError(f"groups: column '{name}' has {got}, expected at most {MOST_VALUES}; put some together")
    if odd := [value for value in values.tolist() if not can_be_shown(str(value))]:
        raise UserError(f"groups: column '{name}' has a value {shown(odd[0])}; write a word for it, such as 'unknown'")
    return column if column.dtype.kind == "U" else column.astype(np.int64)


def can_be_shown(text: str) -> bool:
    """Tell whether a table can show a text as the name of a column or a group."""
    return 0 < len(text) <= MOST_LETTERS and text.isprintable()
