"""`doctor`: show in two minutes, without any data, that a device computes what it should, and how fast."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.commands.run import MakeRegistry
from benchmark.units import counted

if TYPE_CHECKING:
    from benchmark.doctor.examination import Check, Diagnosis, Patient, Result
    from benchmark.jobs import Suite

HELP = "is this GPU (or CPU) right and ready? two minutes, no data needed"
REPORT = "please report it with the output of `python run_all.py doctor --json`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", default="auto", metavar="auto|cpu|cuda[:n]|xpu|mps", help="what to examine (default: auto)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, to attach to a report of a fault")


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    import torch

    from benchmark.determinism import make_deterministic, set_precision
    from benchmark.devices import device_kind, device_name, numbered
    from benchmark.doctor.examination import Patient, examine
    from benchmark.provenance import environment, provenance

    device_kind(arguments.device)
    device = numbered(torch.device(device_name(arguments.device)))
    make_deterministic(threads := torch.get_num_threads(), device)
    set_precision(device, tf32=False)
    patient = Patient(device, make_registry([]), arguments.device)
    found: list[Diagnosis] = []
    for diagnosis in examine(patient, all_checks()):
        print(diagnosis.line(), file=sys.stderr if arguments.json else sys.stdout, flush=True)
        found.append(diagnosis)
    troubles = [diagnosis for diagnosis in found if diagnosis.state == "trouble"]
    if arguments.json:
        begun = found[0].state == "fine"
        made = {"environment": environment(device, threads) if begun else "unknown", **provenance()}
        print(json.dumps({**made, "checks": [diagnosis.plain() for diagnosis in found]}, indent=1, default=str))
    else:
        took = sum(diagnosis.seconds for diagnosis in found)
        print(
            f"{counted(len(troubles), 'check')} in trouble; {REPORT}"
            if troubles
            else f"nothing is wrong ({took:.0f} s)"
        )
    return 1 if troubles else 0


def all_checks() -> "list[Check]":
    from benchmark.doctor.batches import batches
    from benchmark.doctor.examination import Check
    from benchmark.doctor.hardware import hardware
    from benchmark.doctor.pace import pace
    from benchmark.doctor.steps import repeatable, same_as_cpu, without_syncs
    from benchmark.doctor.training import memory, precisions, resumes, two_devices

    update = "Update driver and torch; if it stays, do not trust results of this device"
    return [
        Check(
            "the device",
            hardware,
            "See whether `nvidia-smi` knows it, and which build of torch this is",
        ),
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


def paper_hours(patient: "Patient") -> "Result":
    from benchmark.doctor.pace import hours
    from benchmark.store import Store

    with tempfile.TemporaryDirectory() as folder:
        return hours(patient, paper_suites(patient, Path(folder)), Store(Path(folder)))


def paper_suites(patient: "Patient", folder: Path) -> "list[Suite]":
    """What `paper all` would run here."""
    from benchmark.cache import Folders
    from benchmark.commands import paper
    from benchmark.published import load_tables

    parser = argparse.ArgumentParser()
    paper.add_arguments(parser)
    asked = parser.parse_args(["all", "--dry-run", "--device", str(patient.device)])
    grids = paper.make_grids(load_tables(["all"]), asked, patient.methods, Folders(folder, folder))
    return [grid.suite for grid in grids]
