"""Turn a matrix of numbers into what the pipeline carries, and refuse numbers that cannot be trained on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
