"""List all checks of the doctor in their order, with what to do where one finds trouble."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmark.data.cache import Folders
from benchmark.data.devices import device_kind, device_name, with_number
from benchmark.doctor.batches import batches
from benchmark.doctor.examination import Check, Diagnosis, Patient, Result, examine
from benchmark.doctor.hardware import hardware
from benchmark.doctor.pace import hours, pace
from benchmark.doctor.steps import repeatable, same_as_cpu, without_syncs
from benchmark.doctor.training import memory, precisions, resumes, two_devices
from benchmark.jobs.job import Methods
from benchmark.launch.suites import SuiteMaker, paper_grids
from benchmark.paper.table_files import load_tables
from benchmark.store.store import Store
from benchmark.train.determinism import make_deterministic, set_precision
from benchmark.train.provenance import environment, provenance


def admit(wanted: str, methods: Methods) -> Patient:
    """Make a device ready for its checks: with its number, set to repeat results, in full precision."""
    device_kind(wanted)
    device = with_number(torch.device(device_name(wanted)))
    make_deterministic(torch.get_num_threads(), device)
    set_precision(device, tf32=False)
    return Patient(device, methods, wanted)


def made_with(patient: Patient, *, begun: bool) -> dict[str, Any]:
    """Return what the checks were made with. Of a device that does not even begin, little is known."""
    machine = environment(patient.device, torch.get_num_threads()) if begun else "unknown"
    origin = provenance()
    libraries = {"python": origin.python, "platform": origin.platform, "libraries": origin.libraries}
    return {"environment": machine, "commit": origin.commit, **libraries}


def all_checks() -> list[Check]:
    update = "Update driver and torch; if this check still fails, do not trust results of this device"
    return [
        Check("the device", hardware, "See whether `nvidia-smi` knows it, and which build of torch this is"),
        Check("batches", batches, "If only streamed ones are wrong, keep images on the device: raise --data-budget"),
        Check("steps against the CPU", same_as_cpu, update),
        Check("steps without a wait", without_syncs, "Results are right, but take longer than they need"),
        Check("steps repeated", repeatable, "Runs on this device repeat only roughly"),
        Check("precisions", precisions, f"If only half precision is wrong, leave --amp off here. {update}"),
        Check("save and go on", resumes, "Do not interrupt runs on this device"),
        Check("memory", memory, "Long runs may end for lack of memory; --retries 3 takes them further"),
        Check("two devices", two_devices, "Leave out --gpus-per-job (docs/multi-gpu.md)"),
        Check("pace", pace, "Look whether other programs use the device"),
        Check("hours", paper_hours, "Where memory is short, a smaller batch helps: --set batch_size=N"),
    ]


def examine_all(patient: Patient) -> Iterator[Diagnosis]:
    """Make all checks in turn."""
    return examine(patient, all_checks())


def paper_hours(patient: Patient) -> Result:
    """Estimate the device-hours of what `paper all` would run here. No data is needed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folders = Folders(folder, folder)
        maker = SuiteMaker(patient.methods, folders, str(patient.device), needs_data=lambda task: False)
        grids = paper_grids(load_tables(["all"]), "paper", maker)
        return hours(patient, [grid.suite for grid in grids], Store(folder))
