"""`doctor` on a device: all is well there, and what is not is noticed."""

import pytest
import torch

from benchmark.doctor import checks as command
from benchmark.doctor import pace, training
from benchmark.doctor.examination import Patient, Result, Trouble
from benchmark.doctor.made_up import trainable_labels
from methods import Registry
from tests.conftest import run_here
from tests.device.conftest import NAME, SIMULATED

pytestmark = pytest.mark.device


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each operator costs a real one's time, a small network stands for the large one."""
    if SIMULATED:
        for module in (training, pace):
            monkeypatch.setattr(module, "LARGE", "digits")
        monkeypatch.setattr(command, "paper_hours", lambda patient: Result("some hours"))


def test_nothing_is_wrong(device: torch.device, quick: None) -> None:
    ran = run_here("doctor", "--device", NAME)
    assert ran.returncode == 0, ran.stdout
    left_out = [line for line in ran.stdout.splitlines() if line.startswith("–")]
    assert [line.split(":")[0] for line in left_out] in (["– two devices"], [])
    assert "busy with nothing, computing, copying" in ran.stdout
    labels = list(trainable_labels(Patient(device, Registry())))
    assert f"three steps each of {len(labels)} labels" in ran.stdout
    assert "suggested: " in ran.stdout


def test_a_leak_is_noticed(device: torch.device, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    taken = training.endless_steps

    def leaking(*arguments: object) -> object:
        for _ in taken(*arguments):
            kept.append(torch.zeros(1000, device=device))
            yield

    monkeypatch.setattr(training, "endless_steps", leaking)
    with pytest.raises(Trouble, match=r"memory grew by .* from step 16 to step 24"):
        training.memory(Patient(device, Registry()))


def test_a_job_of_two_processes() -> None:
    """As where there are two devices, which a simulation cannot have exchange gradients."""
    training.shared_steps(Patient(torch.device("cpu"), Registry()))
