"""Make checks in turn, and tell what each one says of a device and what to do where it finds trouble."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch

from benchmark.data.devices import device_lost, free_memory, out_of_memory, responds, wait_for
from benchmark.jobs.job import Methods

SIGNS = {"fine": "✓", "trouble": "✗", "left out": "–"}


@dataclass(frozen=True)
class Patient:
    """A device, the methods that are to run on it, and what the user called it."""

    device: torch.device
    methods: Methods
    wanted: str = ""


@dataclass(frozen=True)
class Result:
    """What a check has to say beside that nothing is wrong."""

    remark: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Trouble(Exception):
    """What is wrong, and numbers that show it."""

    def __init__(self, what: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(what)
        self.facts = facts or {}


class LeftOut(Exception):
    """Why a check does not apply to this device."""


@dataclass(frozen=True)
class Check:
    name: str
    examine: Callable[[Patient], Result]
    advice: str
    """What to do where it fails."""


@dataclass(frozen=True)
class Diagnosis:
    check: str
    state: Literal["fine", "trouble", "left out"]
    remark: str
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        return f"{SIGNS[self.state]} {self.check}: {self.remark}"

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def examine(patient: Patient, checks: list[Check]) -> Iterator[Diagnosis]:
    """Make every check, whatever the others found; none after the device is lost, or if it does not even begin."""
    for index, check in enumerate(checks):
        started = time.monotonic()
        state, result, lost = diagnose(patient, check)
        yield Diagnosis(check.name, state, result.remark, round(time.monotonic() - started, 2), result.facts)
        if lost or (index == 0 and state == "trouble"):
            return


def diagnose(patient: Patient, check: Check) -> tuple[Literal["fine", "trouble", "left out"], Result, bool]:
    """Return how a check ended, what it says, and whether the device is lost."""
    try:
        result = check.examine(patient)
        wait_for(patient.device)
        free_memory(patient.device)
        return "fine", result, False
    except LeftOut as reason:
        return "left out", Result(str(reason)), False
    except Trouble as trouble:
        return "trouble", Result(f"{trouble}. {check.advice}.", trouble.facts), not responds(patient.device)
    except Exception as error:
        said, lost = " ".join(f"{type(error).__name__}: {error}".split())[:400], device_lost(error, patient.device)
        if lost:
            said = f"the device is lost ({said}); no further check is possible"
        if out_of_memory(error):
            said = f"out of memory ({said}); is another program using the device?"
            free_memory(patient.device)
        return "trouble", Result(f"{said}. {check.advice}.", {"traceback": traceback.format_exc()}), lost
