"""Count the operators that a step asks of a device: on a fast one, they and not the arithmetic are its cost."""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

FREE = {"detach", "alias", "lift_fresh", "_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty",
        "new_empty_strided", "set_", "record_stream"}  # fmt: skip
"""Operators that launch nothing, beside views."""


class Launches(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators that compute or copy on a kind of device, by name, as long as it is entered."""

    def __init__(self, kind: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind = kind
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        kinds = (each.device.type for each in tree_leaves((args, result)) if isinstance(each, torch.Tensor))
        if not func.is_view and name not in FREE and self.kind in kinds:
            self.counts[name] += 1
        return result
