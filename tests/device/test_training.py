"""Jobs on a device: the bits of the CPU, no wait in a step, resumed and branched as ever."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.check.harness import make_batch, moved, small, step_loss
from benchmark.data.dataset import prepare
from benchmark.data.devices import device_lost, forbidden_syncs
from benchmark.doctor import steps
from benchmark.doctor.examination import Patient, Trouble
from benchmark.doctor.made_up import trainable_labels
from benchmark.forecast.step_times import step_time
from benchmark.jobs.job import Job
from benchmark.store.store import Store
from benchmark.train import checkpoints as checkpoints_module
from benchmark.train import trainer as trainer_module
from benchmark.train.context import Context
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Trainer, trained_parameters
from methods import Registry
from tests.conftest import NOWHERE
from tests.device.conftest import SIMULATED
from tests.jobs.test_shared_warmup import results_of
from tests.train.test_speed_settings import assert_resumes, make_job

pytestmark = pytest.mark.device
CPU, PLENTY, REGISTRY = torch.device("cpu"), 10**12, Registry()
ADAM = ("optimizer.name=adam", "optimizer.momentum=0", "optimizer.lr=0.002")


def run(job: Job, folder: Path, device: torch.device, **how: Any) -> None:
    run_job(job, Context(folder, NOWHERE, REGISTRY, **how), device, lambda values: None)


def trainer_on(device: torch.device, job: Job, budget: int = PLENTY) -> Trainer:
    return Trainer(job, REGISTRY, prepare(job.task.data, NOWHERE, 0, device, budget), device)


@pytest.mark.parametrize("label", ["SR", "SAT+EM", "DG", "CCL-SC", "AUCOC"])
def test_training_is_that_of_the_cpu(
    tiny: Path, tmp_path: Path, device: torch.device, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    """Resident and streamed to the bit; a real device has its own rounding, but the same of both."""
    monkeypatch.setattr(trainer_module, "has_streams", lambda device: True)  # so that the CPU's optimiser is fused too
    job = make_job(tiny, label, "network.dropout=0", "data.val=0.1", "channels_last=true")
    for name, where, budget in (("cpu", CPU, PLENTY), ("resident", device, PLENTY), ("streamed", device, 0)):
        run(job, tmp_path / name, where, budget=budget)
    assert results_of(tmp_path / "resident") == results_of(tmp_path / "streamed")
    ours, theirs = (
        Store(tmp_path / name).read_prediction(job.folder).prediction.logits for name in ("streamed", "cpu")
    )
    assert np.array_equal(ours, theirs) if SIMULATED else np.allclose(ours, theirs, atol=0.1)


def test_no_label_waits(device: torch.device) -> None:
    labels = list(trainable_labels(Patient(device, REGISTRY)))
    assert f"{len(labels)} labels" in steps.without_syncs(Patient(device, REGISTRY)).remark


def test_a_label_that_waits_is_named(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = REGISTRY.get("focal")
    step = waiting.training_step

    def with_a_look(self: Any, *arguments: Any) -> Any:
        found = step(self, *arguments)
        assert found.loss.item() < 1e9
        return found

    monkeypatch.setattr(waiting, "training_step", with_a_look)
    with pytest.raises(Trouble, match="steps of Focal, Adaptive Focal wait for the device"):
        steps.without_syncs(Patient(device, REGISTRY))


@pytest.mark.parametrize("budget", [PLENTY, 0], ids=["resident", "streamed"])
@pytest.mark.parametrize("settings", [(), ("amp=fp16",), ADAM], ids=["off", "fp16", "adam"])
def test_no_epoch_waits(tiny: Path, device: torch.device, budget: int, settings: tuple[str, ...]) -> None:
    """As the trainer takes them: images, steps, sums of the logs."""
    trainer = trainer_on(device, make_job(tiny, "CCL-SC", "data.val=0", *settings), budget)
    state = trainer.start()
    while state.epoch <= trainer.job.warmup_epochs:
        state = trainer.run_epoch(state)
    with forbidden_syncs(device) as told:
        if not told:
            pytest.skip("this kind of device cannot tell")
        trainer.train_epoch(state)


def test_steps_against_the_cpu(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps.same_as_cpu(Patient(device, REGISTRY))
    assert found.facts["largest_difference"] == 0 or not SIMULATED
    monkeypatch.setattr(steps, "one_step", lambda method: float(next(method.parameters()).device == CPU))
    with pytest.raises(Trouble, match="differs from the CPU's by 1"):
        steps.same_as_cpu(Patient(device, REGISTRY))


def test_a_kernel_that_fails_late_is_a_lost_device(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """What notices it may blame another library."""
    blamed = RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")
    assert not device_lost(blamed, device)

    def fails(*_: object) -> None:
        raise RuntimeError("unspecified launch failure")

    monkeypatch.setattr(torch.get_device_module(device), "synchronize", fails)
    assert device_lost(blamed, device)


@pytest.mark.parametrize(
    "settings", [(), ("amp=fp16",), ADAM, (*ADAM, "amp=fp16")], ids=["sgd", "fp16", "adam", "both"]
)
@pytest.mark.parametrize("label", ["SAT", "CCL-SC"])
def test_a_killed_job_resumes_to_the_bit(
    tiny: Path, tmp_path: Path, device: torch.device, label: str, settings: tuple[str, ...]
) -> None:
    assert_resumes(make_job(tiny, label, *settings), tmp_path, device)


def test_what_an_optimiser_counts_is_on_the_device(tiny: Path, device: torch.device) -> None:
    trainer = trainer_on(device, make_job(tiny, "SAT", *ADAM))
    state = trainer.start()
    for _ in range(2):
        state = trainer.run_epoch(state)
    plain = checkpoints_module.state_to_plain(state)
    for values in plain["optimizer"].values():
        values["step"] = values["step"].cpu()
    again = checkpoints_module.state_from_plain(trainer, plain)
    assert all(again.optimizer.state[p]["step"].device == device for p in trained_parameters(again.method))
    again = trainer.run_epoch(again)
    assert again.epoch == 3


def test_an_overflow_in_the_first_step(tiny: Path, device: torch.device) -> None:
    trainer = trainer_on(device, make_job(tiny, "SR", "amp=fp16", "optimizer.lr=0.01"))
    state = trainer.start()
    state.scaler = torch.amp.GradScaler(device.type, init_scale=2.0**40, growth_interval=10**6)
    state = trainer.run_epoch(state)
    assert state.scaler.get_scale() < 2.0**40
    assert all(torch.isfinite(parameter).all() for parameter in state.method.parameters())


def test_a_probe_waits_before_and_after(tiny: Path, device: torch.device, simulated: None) -> None:
    trainer = trainer_on(device, make_job(tiny, "SR", "data.val=0", "batch_size=2"))
    state = trainer.start()
    torch.sim.reset_counters()
    assert step_time(trainer, state) > 0
    assert torch.sim.syncs() == 6, "two for each of three rounds, however many steps they have"


def test_memory_is_counted_from_the_beginning_of_each_job(tiny: Path, tmp_path: Path, device: torch.device) -> None:
    peaks = []
    for label in ("CCL-SC", "SR"):
        job = make_job(tiny, label, "epochs=3")
        run(job, tmp_path, device)
        record = Store(tmp_path).read_record(job.folder)
        peaks.append(record.provenance.peak_bytes)
    assert peaks[0] > peaks[1] > 0


def test_the_record_says_which_device(tiny: Path, tmp_path: Path, device: torch.device) -> None:
    job = make_job(tiny, "SR", "epochs=3")
    run(job, tmp_path, device)
    (record,) = (json.loads(path.read_text()) for path in tmp_path.rglob("record.json"))
    model = torch.get_device_module(device).get_device_name(device)
    assert f", {model}," in record["provenance"]["environments"][0]
    assert record["provenance"]["step_seconds"]["device"] == device.type


def test_small_candidates_train_on_the_device(device: torch.device) -> None:
    method = small(REGISTRY.get("ccl_sc"), "CCL-SC").make().to(device).train()
    loss = step_loss(method, steps.optimizer_of(method, device), moved(make_batch(method), device))
    assert loss.device == device and bool(torch.isfinite(loss))
