"""Turn a matrix of numbers into what the pipeline carries, and refuse numbers that cannot be trained on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
"""(N, D)."""


def as_pictures(values: Matrix) -> NDArray[Any]:
    """Return vectors as images of D channels of one pixel: half-precision floats as they are, others in single."""
    kept = np.float16 if values.dtype == np.float16 else np.float32
    with np.errstate(over="ignore"):  # what becomes infinite is refused by its row and column
        return values.astype(kept, copy=False)[:, :, None, None]


def constant_columns(values: Matrix) -> NDArray[np.bool_]:
    """Tell which columns have one value alone."""
    return np.asarray(values.max(axis=0) == values.min(axis=0))
