"""Choose some of many rows, the same ones each time."""

import numpy as np
from numpy.typing import NDArray


def choose_rows(total: int, count: int) -> NDArray[np.int64]:
    """Return `count` random rows, in order, which depend on `count` and `total` alone; all rows if it is 0."""
    if not count or count >= total:
        return np.arange(total)
    return np.sort(np.random.Generator(np.random.PCG64(count)).permutation(total)[:count])
