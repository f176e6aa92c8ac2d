"""How many operators a step asks of a device: on a fast one, that and not the arithmetic is what a step costs."""

from collections import Counter
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

FREE = {"detach", "alias", "lift_fresh", "_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty",
        "new_empty_strided", "set_", "record_stream"}  # fmt: skip
"""Operators that launch nothing, beside views."""


class Launches(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators that compute or copy, by name, as long as it is entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if func.namespace != "profiler" and not func.is_view and name not in FREE:
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))

    def total(self) -> int:
        return self.counts.total()
