"""Hold rows of numbers, text and labels; turn numbers into what the pipeline carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.limits import shown

Matrix = NDArray[Any]
"""(N, D)."""
COUNTED = "rows count from 0"


@dataclass(frozen=True)
class Part:
    """The rows of a file, or of one split in it."""

    values: Matrix
    labels: NDArray[Any]
    where: str
    names: Sequence[str]
    """Of the columns of `values`."""
    texts: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns of text by name; None where a value is missing."""


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
