"""Where jobs run: one device name per worker, the first of those that each of its jobs takes."""

import gc
from typing import Any

import psutil
import torch

from benchmark.ahead import cores
from benchmark.errors import UserError

DEFAULTS: dict[str, dict[str, Any]] = {"cpu": {"channels_last": True}, "cuda": {"channels_last": True}, "mps": {}}
"""Settings of a task that a device suggests. Precision is never among them: the paper's is single."""


def choose_devices(
    wanted: str, workers: int | None, threads: int, jobs_per_device: int = 1, gpus_per_job: int = 1
) -> list[str]:
    """`auto`, `cpu`, `cuda`, `cuda:N` or `mps` → one for each worker; by default as many as GPUs, or as cores hold."""
    name, kind = device_name(wanted), device_kind(wanted)
    if kind == "cpu":
        if jobs_per_device > 1:
            raise UserError("--jobs-per-device is for GPUs; on the CPU use --workers")
        return ["cpu"] * (workers or max(1, cores() // (threads * gpus_per_job)))
    count = torch.cuda.device_count() if name == "cuda" else 1
    if gpus_per_job > count:
        raise UserError(
            f"--gpus-per-job {gpus_per_job} is more than the {count} GPU(s) of --device {wanted}; use at most {count}"
        )
    firsts = range(0, count - gpus_per_job + 1, gpus_per_job)
    devices = [f"cuda:{index}" for index in firsts] if name == "cuda" else [name]
    return [devices[index % len(devices)] for index in range(workers or jobs_per_device * len(devices))]


def device_name(wanted: str) -> str:
    return default_device() if wanted == "auto" else wanted


def device_kind(wanted: str) -> str:
    return checked_kind(device_name(wanted), wanted)


def default_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def checked_kind(name: str, wanted: str) -> str:
    """The type of a device that exists here."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda", "mps"):
        raise UserError(f"unknown device '{wanted}': expected auto, cpu, cuda, cuda:N or mps")
    counts = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if (device.index or 0) >= counts[device.type]:
        raise UserError(f"device '{wanted}' is not available on this machine; use --device auto")
    return device.type


RESIDENT_SHARE = 0.5
"""Of a device's free memory, what images may take."""


def data_budget(device: torch.device, jobs: int) -> int:
    """Bytes of images that each of `jobs` on a device may keep there."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + unused  # what an earlier job left with torch is free too
    else:
        free = psutil.virtual_memory().available
    return int(RESIDENT_SHARE * free / jobs)


def start_memory(device: torch.device) -> None:
    """From here on `used_memory` counts."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def used_memory(device: torch.device) -> int:
    """Bytes: on a GPU the most that tensors took at a time, elsewhere what the process holds now."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else int(psutil.Process().memory_info().rss)


def out_of_memory(error: BaseException) -> bool:
    """Each kind of device says it in its own way."""
    said = isinstance(error, RuntimeError) and any(
        text in str(error) for text in ("out of memory", "can't allocate memory", "not enough memory")
    )
    return said or isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError))


def free_memory(device: torch.device) -> None:
    """Give back what a failed job has taken, so that the next one does not fail with it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
