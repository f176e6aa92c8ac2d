"""Choose the devices that jobs run on, and ask them for their memory, name and state.

This uses torch's common interface of accelerators, so that CUDA, XPU and devices that others add run the same lines.
`module_of(device)` is torch.cuda, torch.xpu, … MPS has no streams, and one device.
"""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch

from benchmark.base.errors import UserError
from benchmark.base.prefetch import cores
from benchmark.base.units import counted

module_of = torch.get_device_module
DEFAULTS: dict[str, dict[str, Any]] = {"cpu": {"channels_last": True}, "cuda": {"channels_last": True}, "mps": {}}
"""Settings of a task that suit a kind of device. Precision is never among them: the paper's is single."""
BACKENDS = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl"}
"""The library by which devices of a kind exchange gradients."""
RESIDENT_SHARE = 0.5
"""The share of a device's free memory that images may take."""
LEAST_PROCESSES, PROCESSES_PER_CORE = 16, 4
"""How many processes are allowed: each takes hundreds of megabytes, and a core now and then."""


def default_settings(kind: str) -> dict[str, Any]:
    """Return the settings that suit a kind of device; one that is not listed is treated as a GPU."""
    return DEFAULTS.get(kind, DEFAULTS["cuda"])


def choose_devices(
    wanted: str, workers: int | None, threads: int, jobs_per_device: int = 1, gpus_per_job: int = 1
) -> list[str]:
    """Return the first device of each worker, from `auto`, `cpu`, `cuda` or `cuda:N`; by default all GPUs or cores."""
    if device_kind(wanted) == "cpu":
        if jobs_per_device > 1:
            raise UserError("--jobs-per-device is for GPUs; on the CPU use --workers")
        devices, by_default = ["cpu"], max(1, cores() // (threads * gpus_per_job))
    else:
        devices = first_devices(wanted, gpus_per_job)
        by_default = jobs_per_device * len(devices)
    num_workers, most = workers or by_default, max(LEAST_PROCESSES, PROCESSES_PER_CORE * cores())
    if num_workers * gpus_per_job > most:
        raise UserError(
            f"expected at most {most} processes on this machine of {counted(cores(), 'core')}, got "
            f"{num_workers * gpus_per_job:,}, which would fill its memory; lower --workers, --jobs-per-device or "
            "--gpus-per-job"
        )
    return [devices[index % len(devices)] for index in range(num_workers)]


def first_devices(wanted: str, gpus_per_job: int) -> list[str]:
    """Return the first device of each group of `gpus_per_job` devices."""
    name, kind = device_name(wanted), device_kind(wanted)
    if gpus_per_job > 1 and kind not in BACKENDS:
        raise UserError(f"--gpus-per-job: expected a device of {', '.join(BACKENDS)}, got {kind}; leave the option out")
    count = device_count(kind) if name == kind else 1
    if gpus_per_job > count:
        raise UserError(
            f"--gpus-per-job {gpus_per_job} is more than the {counted(count, 'GPU')} of --device {wanted}; use at most "
            f"{count}"
        )
    firsts = range(0, count - gpus_per_job + 1, gpus_per_job)
    return [f"{kind}:{index}" for index in firsts] if name == kind and kind != "mps" else [name]


def device_name(wanted: str) -> str:
    return default_device() if wanted == "auto" else wanted


def device_kind(wanted: str) -> str:
    """Return the kind of a device; raise an error if this machine has no such device."""
    try:
        device = torch.device(device_name(wanted))
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda", "mps", "xpu", accelerator_kind()):
        raise UserError(f"unknown device '{wanted}': expected auto, cpu, cuda, cuda:N, xpu or mps")
    if (device.index or 0) >= device_count(device.type):
        raise UserError(f"device '{wanted}' is not available on this machine; use --device auto")
    return device.type


def accelerator_kind() -> str:
    """Return the kind of accelerator that torch was built for, which need not be there, or `cpu`."""
    try:
        device = torch.accelerator.current_accelerator()
    except RuntimeError:  # torch 2.6, where none is there
        device = None
    return device.type if device is not None else "cpu"


def default_device() -> str:
    """Return the accelerator of this machine, or the CPU where there is none."""
    kind = accelerator_kind()
    return kind if kind != "cpu" and torch.accelerator.is_available() else "cpu"


def device_count(kind: str) -> int:
    """Return how many devices of a kind torch sees here."""
    if kind == "cpu":
        return 1
    return int(torch.accelerator.device_count()) if kind == accelerator_kind() else 0


def has_streams(device: torch.device) -> bool:
    """Tell whether a device computes beside the host, in streams of work that the host must not wait for."""
    return device.type not in ("cpu", "meta", "mps")


def has_doubles(device: torch.device) -> bool:
    """Tell whether a device computes in float64."""
    return device.type != "mps"


def enter(device: torch.device) -> torch.device:
    """Initialise a device and make it the current one of this thread; return it with its number."""
    device = with_number(device)
    if has_streams(device):
        module_of(device).set_device(device)
        module_of(device).init()  # setting alone leaves the memory statistics of some versions unusable
    return device


def with_number(device: torch.device) -> torch.device:
    """Return a device with its number: `cuda` is the first one."""
    return torch.device(device.type, device.index or 0) if has_streams(device) else device


def model_of(device: torch.device) -> str:
    """Return the name that the maker gives a device."""
    return str(module_of(device).get_device_name(device)) if has_streams(device) else device.type


def describe(device: torch.device) -> str:
    """Return the model of a device, and what else its results depend on."""
    if device.type != "cuda":
        return model_of(device)
    tf32 = "on" if torch.backends.cudnn.allow_tf32 else "off"
    return f"{model_of(device)}, cuDNN {torch.backends.cudnn.version()}, TF32 {tf32}"  # type: ignore[no-untyped-call]


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all its work."""
    if has_streams(device):
        module_of(device).synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@contextmanager
def forbidden_syncs(device: torch.device) -> Iterator[bool]:
    """Raise an error where the host would wait for the device; yield whether this kind of device can detect that."""
    switch = getattr(module_of(device), "set_sync_debug_mode", None) if has_streams(device) else None
    if switch is None:
        yield False
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it cannot see every wait
        switch("error")
    try:
        yield True
    finally:
        switch("default")


def free_bytes(device: torch.device) -> int:
    if not has_streams(device):
        return int(psutil.virtual_memory().available)
    module = module_of(device)
    unused = module.memory_reserved(device) - module.memory_allocated(device)
    return int(module.mem_get_info(device)[0] + unused)  # what an earlier job left with torch is free too


def data_budget(device: torch.device, jobs: int) -> int:
    """Return how many bytes of images each of `jobs` on a device may keep there."""
    return int(RESIDENT_SHARE * free_bytes(device) / jobs)


def start_memory(device: torch.device) -> None:
    """Start the count of `used_memory` again."""
    if has_streams(device):
        module_of(device).reset_peak_memory_stats(device)


def used_memory(device: torch.device) -> int:
    """Return the most bytes that tensors took at a time; 0 on the host, whose processes keep what other jobs left."""
    return int(module_of(device).max_memory_allocated(device)) if has_streams(device) else 0


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error means that memory ran out; each kind of device says so in its own words."""
    by_text = isinstance(error, RuntimeError) and any(
        text in str(error) for text in ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
    )
    return by_text or isinstance(error, (MemoryError, torch.OutOfMemoryError))


def device_lost(error: BaseException, device: torch.device) -> bool:
    """Tell whether a device is lost to this process: all it does there from now on fails too.

    Kernels fail late, and the call that notices may blame another library: so the device is tried as well.
    """
    if out_of_memory(error):
        return False
    broken = getattr(torch, "AcceleratorError", ())  # torch 2.8 and later
    return isinstance(error, broken) or "CUDA error:" in str(error) or not responds(device)


def responds(device: torch.device) -> bool:
    """Tell whether a device that this process uses still works."""
    try:
        if has_streams(device) and module_of(device).is_initialized():
            wait_for(device)
    except Exception:
        return False
    return True


def free_memory(device: torch.device) -> None:
    """Free the memory that a failed job took, so that the next job does not fail too."""
    gc.collect()
    if has_streams(device):
        module_of(device).empty_cache()
