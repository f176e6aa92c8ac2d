"""Corrupt images: one kind at one severity, with draws that depend on nothing but these and the images' numbers."""

from torch import Tensor

VERSION = 1
"""Raised when any bit of the images changes: sets of another version are other sets."""


def corrupt(images: Tensor, kind: str, severity: int, ids: Tensor) -> Tensor:
    """Return images (n, C, H, W) of bytes under a corruption; `ids` are their numbers in their data set."""
    raise NotImplementedError(f"{kind} {severity}")
