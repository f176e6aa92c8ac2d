"""Raises where a step would wait for the device, also where the meta device itself stays silent."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SYNCING = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "equal",
    "_unique2",
    "unique_dim",
    "bincount",
    "is_nonzero",
}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}


class HostSync(AssertionError):
    """An operation whose result's shape or value the host would have to wait for."""


class SyncGuard(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """For steps on the meta device: forbids value reads, boolean indexing and indices that live elsewhere."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in SYNCING:
            raise HostSync(f"{name} reads a value back")
        if name in INDEXING:
            for index in args[1]:
                if index is not None and index.dtype in (torch.bool, torch.uint8):
                    raise HostSync(f"{name} with a boolean mask has a shape that depends on the data")
                if index is not None and index.device != args[0].device:
                    raise HostSync(f"{name} of a tensor on {args[0].device} by an index on {index.device}")
        return func(*args, **(kwargs or {}))
