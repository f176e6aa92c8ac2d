"""Find the files of a user's vectors, and read them as numbers, text and labels, not yet encoded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.rows import READERS, table_suffix
from benchmark.base.units import counted
from benchmark.config.task import DataConfig
from benchmark.data.sources.arrays import read_arrays
from benchmark.data.sources.folder import own_path
from benchmark.data.sources.vectors.columns import Part
from benchmark.data.sources.vectors.tables import read_table

SPLITS = ("train", "test", "val")
WHOLE = ""
"""The name of a part that has still to be split."""


Parts = dict[str, Part]


def data_files(config: DataConfig) -> dict[str, Path]:
    """Return the files that are read, by split; one that is still to be split, or has all splits, has no name."""
    path = own_path(config)
    if config.test_path:
        if not Path(config.test_path).exists():
            raise UserError(f"data.test_path: '{config.test_path}' does not exist; a path is relative to the task file")
        return {"train": path, "test": Path(config.test_path)}
    if not path.is_dir() or any(path.glob("*.npy")):
        return {WHOLE: path}
    found = {file.name.partition(".")[0]: file for file in sorted(path.iterdir()) if is_data(file)}
    splits = {name: found[name] for name in SPLITS if name in found}
    if not {"train", "test"} <= splits.keys():
        raise UserError(f"'{path}' needs files train and test, such as train.csv and test.csv, or npy files")
    return splits


def is_data(file: Path) -> bool:
    return file.suffix == ".npz" or table_suffix(file) in READERS


def read_parts(config: DataConfig) -> Parts:
    """Return what is in the files, by split."""
    files = data_files(config)
    if WHOLE in files:
        return read_file(files[WHOLE], config)
    parts = {name: read_file(path, config) for name, path in files.items()}
    for name, found in parts.items():
        if WHOLE not in found:
            raise UserError(f"'{files[name]}' has splits of its own; name it alone, as data.path")
    return {name: found[WHOLE] for name, found in parts.items()}


def read_file(path: Path, config: DataConfig) -> Parts:
    if path.is_dir() or path.suffix == ".npz":
        return parts_of_arrays(path, config)
    if table_suffix(path) in READERS and path.is_file():  # opening a pipe would wait for its writer
        return {WHOLE: read_table(path, config)}
    kinds = f"an npz file, a folder of npy files, or a table as {', '.join(READERS)}"
    raise UserError(f"'{path}' cannot be read as vectors; expected {kinds}")


def parts_of_arrays(path: Path, config: DataConfig) -> Parts:
    """Return `vectors` and `labels`, or these of each split as `train_vectors` and so on."""
    for name in ("columns", "one_hot"):
        if getattr(config, name):
            raise UserError(f"data.{name} means nothing to arrays, whose columns have no names; remove it")
    arrays = read_arrays(path)
    if "vectors" in arrays:
        return {WHOLE: part_of_arrays(arrays, "", path)}
    splits = [name for name in SPLITS if name != "val" or "val_vectors" in arrays]
    return {name: part_of_arrays(arrays, f"{name}_", path) for name in splits}


def part_of_arrays(arrays: Mapping[str, NDArray[Any]], prefix: str, path: Path) -> Part:
    for name in (f"{prefix}vectors", f"{prefix}labels"):
        if name not in arrays:
            raise UserError(f"'{path}' has no array '{name}'; it has {', '.join(sorted(arrays)) or 'nothing'}")
    values, labels, where = arrays[f"{prefix}vectors"], arrays[f"{prefix}labels"], f"'{path}': {prefix}vectors"
    if values.ndim != 2 or values.dtype.kind not in "biuf" or not values.shape[1]:
        raise UserError(f"{where} must be numbers (N, D), got {values.dtype} {values.shape}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != len(values):
        raise UserError(
            f"'{path}': {prefix}labels must be one class per vector, got shape {labels.shape} for "
            f"{counted(len(values), 'vector')}"
        )
    return Part(values, labels, where, [f"column {index}" for index in range(values.shape[1])])
