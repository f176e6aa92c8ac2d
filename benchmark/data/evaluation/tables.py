"""Read columns and tables of numbers or text from npz, npy and csv files."""

import csv
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError, brief
from benchmark.base.units import counted

Arrays = dict[str, NDArray[Any]]


def read_table(file: str) -> Arrays:
    """Return the arrays of a file by their names: the columns of a csv file, the one of an npy file by its own name."""
    path = Path(file)
    if not os.path.isfile(file):  # noqa: PTH113 - a Path fails where a name is too long
        kind = "is no regular file" if os.path.exists(file) else "does not exist"  # noqa: PTH110
        raise UserError(f"file: '{file}' {kind}; a path in a task file is relative to it")
    try:
        if path.suffix.lower() == ".csv":
            return read_csv(path)
        with path.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            return {path.stem: loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"file: '{file}' cannot be read as an npz, npy or csv file ({brief(error)})") from None


def read_csv(path: Path) -> Arrays:
    """Return the columns of a csv file with a line of names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        names = [name.strip() for name in next(rows, [])]
        if not names or len(set(names)) < len(names) or "" in names:
            raise UserError(f"file: '{path}' must begin with a line that gives each column another name")
        lines = []
        for row in rows:
            if len(row) != len(names):
                found = counted(len(row), "value")
                raise UserError(f"file: '{path}' line {rows.line_num}: expected {len(names)}, got {found}")
            lines.append([value.strip() for value in row])
    columns = list(zip(*lines, strict=True)) or [()] * len(names)
    return {name: column(values) for name, values in zip(names, columns, strict=True)}


def column(values: tuple[str, ...]) -> NDArray[Any]:
    """Return values as whole numbers if all are written as such, 7 and not 07; else as text."""
    with suppress(ValueError, OverflowError):
        numbers = np.array([int(value) for value in values], np.int64)
        if tuple(map(str, numbers.tolist())) == values:
            return numbers
    return np.array(values)
