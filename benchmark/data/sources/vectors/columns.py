"""Turn a matrix of numbers into what the pipeline carries, and refuse numbers that cannot be trained on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown

Matrix = NDArray[Any]
"""(N, D)."""
COUNTED = "rows count from 0"


def as_pictures(values: Matrix) -> NDArray[Any]:
    """Return vectors as images of D channels of one pixel: half-precision floats as they are, others in single."""
    kept = np.float16 if values.dtype == np.float16 else np.float32
    return values.astype(kept, copy=False)[:, :, None, None]


def quoted(name: str) -> str:
    """Return the name of a column in quotes; columns of arrays have numbers alone."""
    return name if name.startswith("column ") else f"column '{name}'"


def label_kind(labels: NDArray[Any], where: str) -> str:
    """Return whether labels are numbers or text. Raise UserError for all other kinds, and where there are none."""
    if not len(labels):
        raise UserError(f"{where} has no rows")
    if labels.dtype.kind not in "biuU":
        found = shown(labels[0].item()) if labels.dtype.kind == "f" else labels.dtype
        raise UserError(f"{where}: labels must be classes, as whole numbers or text, got {found} in row 0; {COUNTED}")
    return "text" if labels.dtype.kind == "U" else "numbers"
