"""`torch.sim`: the names that `torch.cuda` has, and what tests ask of the simulation."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

_sim = torch.ops.sim
_MODES = ("default", "warn", "error")

Stream = torch.Stream
Event = torch.Event


def _index(device: Any = None) -> int:
    if isinstance(device, int):
        return device
    index = None if device is None else torch.device(device).index
    return current_device() if index is None else index


# Devices


def init() -> None:
    _sim.init()


_lazy_init = init
"""Called by torch before the first tensor is made."""


def is_initialized() -> bool:
    return _sim.is_initialized()


def is_available() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return _sim.is_in_bad_fork()


def device_count() -> int:
    return 2


def current_device() -> int:
    return torch._C._accelerator_getDeviceIndex()


def set_device(device: Any) -> None:
    init()
    torch._C._accelerator_setDeviceIndex(_index(device))


@contextmanager
def device(device: Any) -> Iterator[None]:
    before = current_device()
    set_device(device)
    try:
        yield
    finally:
        set_device(before)


def get_device_name(device: Any = None) -> str:
    return "simulated accelerator"


def get_device_properties(device: Any = None) -> SimpleNamespace:
    total = mem_get_info(device)[1]
    return SimpleNamespace(name=get_device_name(device), total_memory=total, major=9, minor=0, multi_processor_count=1)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    return 9, 0


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    return True


# Streams


def current_stream(device: Any = None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


def set_stream(stream: torch.Stream) -> None:
    torch.accelerator.set_stream(stream)


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    if stream is None:
        yield
    else:
        with stream:
            yield


def synchronize(device: Any = None) -> None:
    init()
    torch.accelerator.synchronize(_index(device))


# Random numbers


def manual_seed(seed: int) -> None:
    torch._C._accelerator_getDefaultGenerator(current_device()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        torch._C._accelerator_getDefaultGenerator(index).manual_seed(seed)


def initial_seed() -> int:
    return torch._C._accelerator_getDefaultGenerator(current_device()).initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    return torch._C._accelerator_getDefaultGenerator(_index(device)).get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    torch._C._accelerator_getDefaultGenerator(_index(device)).set_state(state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(states: list[torch.Tensor]) -> None:
    for index, state in enumerate(states):
        set_rng_state(state, index)


# Memory


def _stat(name: str, device: Any) -> int:
    return torch._C._accelerator_getDeviceStats(_index(device))[name]["all"]


def memory_allocated(device: Any = None) -> int:
    return _stat("allocated_bytes", device)["current"]


def max_memory_allocated(device: Any = None) -> int:
    return _stat("allocated_bytes", device)["peak"]


def memory_reserved(device: Any = None) -> int:
    return _stat("reserved_bytes", device)["current"]


def max_memory_reserved(device: Any = None) -> int:
    return _stat("reserved_bytes", device)["peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    torch._C._accelerator_resetPeakStats(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    init()
    return torch._C._accelerator_getMemoryInfo(_index(device))


def empty_cache() -> None:
    torch._C._accelerator_emptyCache()


def limit_memory(size: int, device: Any = None) -> None:
    """The bytes the device has from now on."""
    _sim.limit_memory(size, _index(device))


# Host syncs and what else a test wants to know


def set_sync_debug_mode(mode: int | str) -> None:
    _sim.on_sync(_MODES.index(mode) if isinstance(mode, str) else mode)


def get_sync_debug_mode() -> int:
    return _sim.get_on_sync()


def syncs() -> int:
    """How often the host waited for a device since `reset_counters`."""
    return sum(sync_counts().values())


def sync_counts() -> dict[str, int]:
    """The same by what waited."""
    return dict(_sim.syncs())


def launches() -> int:
    """The operators that computed or copied."""
    return _sim.launches()


def pending() -> int:
    """The copies not carried out yet."""
    return _sim.pending()


def unrecorded() -> int:
    """How often memory was freed that another stream might still use."""
    return _sim.unrecorded()


def reset_counters() -> None:
    _sim.reset_counters()


def lose(device: Any = None) -> None:
    """The device fails at all that it is asked from now on, for the rest of the process."""
    _sim.lose(_index(device))
