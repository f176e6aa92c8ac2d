"""Tables of whole numbers: computed on the host, once for each device.

Exponentials, angles and distributions are met in tables alone. Their last bits, which differ between machines, are
rounded away.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.data.transfer import upload

BITS = 16
ONE = 1 << BITS
"""What stands for 1 in whole numbers."""
HALF = ONE // 2
Table = NDArray[Any]


@lru_cache(maxsize=8)
def placed(make: Callable[..., Table], device: torch.device, *arguments: Any) -> Tensor:
    """Return the table that a function makes of some arguments, on the device."""
    return upload(make(*arguments), device)


def whole(weights: Table, bits: int = BITS) -> NDArray[np.int64]:
    """Return weights as whole numbers whose sum is 2^bits, exactly; the largest weight takes what rounding leaves.

    In a table of two dimensions each column is such a set of weights.
    """
    rounded: NDArray[np.int64] = np.rint(weights / weights.sum(0) * 2**bits).astype(np.int64)
    largest = np.expand_dims(rounded.argmax(0), 0)
    left = 2**bits - rounded.sum(0)
    np.put_along_axis(rounded, largest, np.take_along_axis(rounded, largest, 0) + left, 0)
    return rounded


def as_bytes(numbers: Tensor) -> Tensor:
    return numbers.clamp(0, 255).to(torch.uint8)


def rounded_bytes(numbers: Tensor, bits: int = BITS) -> Tensor:
    """Return whole numbers in units of 2^−bits as bytes, rounded to the nearest."""
    return as_bytes((numbers + (1 << (bits - 1))) >> bits)


def looked_up(table: Tensor, index: Tensor) -> Tensor:
    """Return the values of a flat table at an index of any shape."""
    return table.index_select(0, index.reshape(-1)).view(index.shape)
