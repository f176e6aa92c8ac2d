"""Tell what the device is, and what the machine says of it."""

import re
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmark.base.prefetch import cores
from benchmark.base.units import text_from_bytes
from benchmark.data.devices import enter, free_bytes, has_streams, module_of
from benchmark.doctor.examination import Patient, Result, Trouble

DRIVER = Path("/proc/driver/nvidia/version")
MPS_PROCESSES = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")


def hardware(patient: Patient) -> Result:
    """Tell name, capability, driver, libraries, precision, free memory, and whether a service shares the device."""
    enter(patient.device)
    facts = {"torch": torch.__version__, **properties(patient.device), "free_bytes": free_bytes(patient.device)}
    if patient.wanted == "auto" and patient.device.type == "cpu" and DRIVER.is_file():
        raise Trouble("NVIDIA's driver is here, but torch sees no GPU: is it a build for CPUs only?", facts)
    shown = {name.replace("_", " "): value for name, value in facts.items() if name != "free_bytes" and value}
    text = ", ".join(f"{name} {value}" for name, value in shown.items())
    return Result(f"{text}, {text_from_bytes(facts['free_bytes'])} free", facts)


def properties(device: torch.device) -> dict[str, Any]:
    if not has_streams(device):
        return {"device": device.type, "instructions": torch.backends.cpu.get_cpu_capability(), "cores": cores()}
    module = module_of(device)
    facts = {"device": module.get_device_name(device), "devices": module.device_count()}
    if device.type == "cuda":
        facts |= {
            "capability": ".".join(map(str, torch.cuda.get_device_capability(device))),
            "CUDA": torch.version.cuda or torch.version.hip,
            "driver": driver(),
            "cuDNN": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "TF32": "on" if torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32 else "off",
            "MPS_service": "on" if mps_service() else "off",
        }
    return facts


def driver() -> str:
    """Return the version of NVIDIA's driver, as the kernel tells it."""
    found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", DRIVER.read_text()) if DRIVER.is_file() else None
    return found[1] if found else "unknown"


def mps_service() -> bool:
    """Tell whether NVIDIA's service runs that lets several processes compute on a GPU at a time."""
    return any(process.info["name"] in MPS_PROCESSES for process in psutil.process_iter(["name"]))
