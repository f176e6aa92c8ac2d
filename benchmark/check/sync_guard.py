"""Raise where a step would wait for the device, also where the meta device itself stays silent."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmark.base.program import ROOT

READING = {"_local_scalar_dense", "equal", "is_nonzero"}
SHAPED_BY_DATA = {"nonzero", "masked_select", "_unique2", "unique_dim", "bincount"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
COPYING = {"_to_copy", "copy", "copy_"}
MADE_FROM_VALUES = {torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor}
"""Functions that make a tensor on the host and copy it, where no operator shows."""
NOT_THEIRS = (Path(torch.__file__).parent, ROOT / "benchmark")


class HostSync(AssertionError):
    """An operation whose result's shape or value the host would have to wait for."""


@contextmanager
def no_host_syncs() -> Iterator[None]:
    """Forbid steps on the meta device to read values, to index by masks or from elsewhere, to copy from the host.

    A copy from the host waits for a GPU unless its memory is pinned, which is the core's business.
    """
    with MadeOnDevice(), SyncGuard():  # type: ignore[no-untyped-call]
        yield


class SyncGuard(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches the operators."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in READING | SHAPED_BY_DATA:
            raise HostSync(f"{name} reads a value back")
        if name in INDEXING:
            for index in (index for index in args[1] if index is not None):
                if index.dtype in (torch.bool, torch.uint8):
                    raise HostSync(f"{name} with a boolean mask has a shape that depends on the data")
                if index.device != args[0].device:
                    raise HostSync(f"{name} of a tensor on {args[0].device} by an index on {index.device}")
        result = func(*args, **(kwargs or {}))
        if name in COPYING:
            refuse_copy(name, args, result)
        return result


class MadeOnDevice(TorchFunctionMode):
    """Watches functions that copy where no operator shows."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in MADE_FROM_VALUES:
            source = args[1 if func is Tensor.new_tensor else 0 :] or tuple((kwargs or {}).values())
            if not isinstance(source[0], Tensor):
                refuse_copy(f"torch.{func.__name__}", [torch.empty(0)], result)
        return result


def refuse_copy(name: str, sources: Any, result: Tensor) -> None:
    from_host = any(isinstance(each, Tensor) and each.device.type == "cpu" for each in sources)
    if from_host and result.device.type != "cpu":
        raise HostSync(
            f"{name} copies from the host, and waits for the device; make the tensor there (torch.full, "
            "torch.arange(…, device=…)), or once as a buffer"
        )


def line_of(error: BaseException) -> str:
    """Return the last line of a person's own file on the way to an error; empty where there is none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(Path(frame.filename).is_relative_to(folder) for folder in NOT_THEIRS)
    ]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
