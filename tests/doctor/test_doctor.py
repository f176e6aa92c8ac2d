"""`doctor`: what it says of a device that is fine, of one that is not, and of the hours that it foretells."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmark.doctor import batches, hardware, pace, steps, training
from benchmark.doctor import checks as command
from benchmark.doctor.examination import Check, LeftOut, Patient, Result, Trouble, examine
from methods import Registry
from tests.conftest import run_here

CPU = torch.device("cpu")
PATIENT = Patient(CPU, Registry())


def check(work: Callable[[Patient], Result], name: str = "it") -> Check:
    return Check(name, work, "Do this")


def raises(error: Exception) -> Callable[[Patient], Result]:
    def work(patient: Patient) -> Result:
        raise error

    return work


class TestExamination:
    def test_every_check_is_made_whatever_the_others_find(self) -> None:
        works = [raises(LeftOut("not here")), raises(Trouble("it is wrong")), raises(ValueError("odd"))]
        found = [*examine(PATIENT, [*map(check, works), check(lambda patient: Result("all is well", {"n": 1}))])]
        assert [each.state for each in found] == ["left out", "trouble", "trouble", "fine"]
        assert [each.line() for each in found] == [
            "– it: not here",
            "✗ it: it is wrong. Do this.",
            "✗ it: ValueError: odd. Do this.",
            "✓ it: all is well",
        ]
        assert json.loads(json.dumps(found[3].plain()))["facts"] == {"n": 1}

    def test_none_is_made_after_the_device_is_lost(self) -> None:
        lost = raises(RuntimeError("CUDA error: unspecified launch failure"))
        found = [*examine(PATIENT, [check(lost), check(lambda patient: Result("never reached"))])]
        assert [each.state for each in found] == ["trouble"]
        assert "the device is lost" in found[0].remark

    def test_out_of_memory_asks_who_else_is_there(self) -> None:
        (found,) = examine(PATIENT, [check(raises(torch.OutOfMemoryError("CUDA out of memory")))])
        assert "is another program using the device?" in found.remark


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network in the place of the large one, and no hours."""
    for module in (training, pace):
        monkeypatch.setattr(module, "LARGE", "digits")
    monkeypatch.setattr(command, "paper_hours", lambda patient: Result("some hours"))


def test_the_command_on_a_cpu(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One check is in trouble: exit code 1, and all that is known as JSON."""
    monkeypatch.setattr(command, "repeatable", raises(Trouble("five steps of SR differ")))
    ran = run_here("doctor", "--device", "cpu", "--json")
    assert ran.returncode == 1
    lines = ran.stderr.splitlines()
    assert len(lines) == len(command.all_checks())
    assert [line for line in lines if line.startswith("✗")] == [
        "✗ steps repeated: five steps of SR differ. Runs on this device repeat only roughly."
    ]
    assert [line for line in lines if line.startswith("✓ batches: streamed = resident = the CPU's")]
    told = json.loads(ran.stdout)
    assert told["environment"].startswith("torch ") and told["libraries"]["timm"]
    by_name = {each["check"]: each for each in told["checks"]}
    assert by_name["steps repeated"]["state"] == "trouble"
    assert by_name["precisions"]["facts"]["losses"].keys() == {"off", "bf16", "fp16"}


def test_the_last_line_says_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, code, words in ((Result("well"), 0, "nothing is wrong"), (Trouble("bad"), 1, "1 check in trouble")):
        work = raises(found) if isinstance(found, Exception) else lambda patient, found=found: found
        monkeypatch.setattr(command, "all_checks", lambda work=work: [check(work)])
        ran = run_here("doctor", "--device", "cpu")
        assert (ran.returncode, ran.stdout.splitlines()[-1][: len(words)]) == (code, words)


def test_bad_input() -> None:
    ran = run_here("doctor", "--device", "gpu")
    assert ran.returncode == 2
    assert "unknown device 'gpu'" in ran.stderr


class TestEveryCheckCanFail:
    def test_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        epoch = batches.epoch

        def swapped(data: Any, busy: str = "", products: int = 0) -> list[Any]:
            first, second, *rest = epoch(data)
            return [second, first, *rest] if busy else [first, second, *rest]

        monkeypatch.setattr(batches, "epoch", swapped)
        with pytest.raises(Trouble, match=r"2 of 7 resident batches, while .* differ from the CPU's"):
            batches.batches(PATIENT)

    def test_repeated_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plain, count = steps.five_steps, itertools.count()

        def drifting(candidate: Any, device: torch.device) -> dict[str, torch.Tensor]:
            return {name: value + next(count) for name, value in plain(candidate, device).items()}

        monkeypatch.setattr(steps, "five_steps", drifting)
        with pytest.raises(Trouble, match="differ when they are repeated"):
            steps.repeatable(PATIENT)

    def test_precisions(self, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
        found = iter([(2.0, 0), (2.0, 0), (float("nan"), 3)])
        monkeypatch.setattr(training, "mean_loss", lambda trainer, steps: next(found))
        with pytest.raises(Trouble, match="is nan in fp16, and 2 in fp32"):
            training.precisions(PATIENT)

    def test_going_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loaded = training.state_from_plain

        def forgetful(trainer: Any, plain: dict[str, Any]) -> Any:
            return loaded(trainer, {**plain, "optimizer": {}})

        monkeypatch.setattr(training, "state_from_plain", forgetful)
        with pytest.raises(Trouble, match="ends in other bits"):
            training.resumes(PATIENT)


def test_hours_are_those_of_a_plan_with_the_same_step_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "pair_of_times", lambda patient, task: (0.02, 0.02))
    found = command.paper_hours(PATIENT).facts
    given = [f"{task}=0.02" for task in found]
    plan = json.loads(run_here("paper", "all", "--dry-run", "--json", "--step-seconds", *given).stdout)
    assert sum(found.values()) == pytest.approx(plan["device_hours"])
    assert found.keys() == {task["task"] for task in plan["tasks"]}


def test_hours_where_a_network_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def times(*_: Any) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(pace, "step_time", times)
    assert "cifar10 does not fit" in command.paper_hours(PATIENT).remark


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build  (x@y)",
    ],
)
def test_a_driver_that_torch_does_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    told = tmp_path / "version"
    told.write_text(line)
    monkeypatch.setattr(hardware, "DRIVER", told)
    assert hardware.driver() == "535.104.05"
    with pytest.raises(Trouble, match="torch sees no GPU"):
        hardware.hardware(Patient(CPU, Registry(), "auto"))
    assert hardware.hardware(Patient(CPU, Registry(), "cpu")).facts["device"] == "cpu", "as was asked for"


def test_a_device_that_does_not_begin_is_not_examined_further() -> None:
    checks = [check(raises(RuntimeError("no driver"))), check(lambda patient: Result("never reached"))]
    (found,) = examine(PATIENT, checks)
    assert found.state == "trouble" and "no driver" in found.facts["traceback"]


def test_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "has_streams", lambda device: True)
    monkeypatch.setattr(pace, "free_bytes", lambda device: 16e9)
    plain = {"bytes": 2e9, "idle": 0.7, "bf16": 2.0, "fp16": 1.9}
    assert pace.suggestion(PATIENT, plain) == "--jobs-per-device 3 and --amp bf16 (other bits, so another job)"
    assert pace.suggestion(PATIENT, {**plain, "idle": 0.1, "bf16": 1.0, "fp16": 1.1}) == "the defaults"
    assert pace.suggestion(PATIENT, {**plain, "bytes": 7e9, "bf16": 1.0, "fp16": 1.0}) == "the defaults", "no room"
