"""Make torch compute the same bits on every run, in a set precision; note the operators that may not."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

UNDETERMINED = "does not have a deterministic implementation"
"""Torch's words for an operator that may give other bits the next time."""


def make_deterministic(threads: int, device: torch.device) -> None:
    """Make torch compute the same bits on every run. On accelerators a few operators cannot, and warn."""
    torch.set_num_threads(threads)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False


def set_precision(device: torch.device, tf32: bool) -> None:
    """Compute with all digits of single precision, or with the 10 bits of TF32. Torch's own default is a mixture."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32


@contextmanager
def undetermined_operators(names: set[str]) -> Iterator[None]:
    """Add the operators that torch warns of to `names`; pass other warnings on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", f".*{UNDETERMINED}")
        pass_on = warnings.showwarning

        def note(message: Any, *rest: Any, **more: Any) -> None:
            operator = re.match(rf"(\S+) {UNDETERMINED}", str(message))
            if operator:
                names.add(operator[1])
            else:
                pass_on(message, *rest, **more)

        warnings.showwarning = note
        yield
