"""Train as jobs do: in every precision, broken off and taken up again, for long, and on two devices."""

import io
import tempfile
from dataclasses import replace
from itertools import islice, pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmark.base.units import counted, text_from_bytes
from benchmark.check.harness import SMALL
from benchmark.config.load import load_task
from benchmark.data.cache import Folders
from benchmark.data.dataset import load
from benchmark.data.devices import BACKENDS, device_count, has_streams, module_of, wait_for
from benchmark.data.sources import describe
from benchmark.doctor.examination import LeftOut, Patient, Result, Trouble
from benchmark.doctor.made_up import job_of, noise, own_phase, trainer_for
from benchmark.forecast.step_times import endless_steps
from benchmark.launch.torchrun import run_on_ranks
from benchmark.train.checkpoints import read_plain, state_from_plain, state_to_plain
from benchmark.train.context import Context
from benchmark.train.trainer import State, Trainer

LARGE, SMALL_TASK = "cifar100", "digits"
PRECISIONS = ("off", "bf16", "fp16")
NEAR = 0.1
"""Relative difference of the mean loss that other precisions may have."""


def large_trainer(patient: Patient, label: str, *overrides: str) -> Trainer:
    """Return a trainer of VGG16 on pictures of the size of CIFAR's."""
    return trainer_for(load_task(LARGE, ["channels_last=true", *overrides]), label, patient)


def precisions(patient: Patient) -> Result:
    """Require that steps of VGG16 in single and half precision have finite losses near each other."""
    label, steps = load_task(LARGE).baseline, 20 if has_streams(patient.device) else 5
    losses, skipped = {}, {}
    for amp in PRECISIONS:
        losses[amp], skipped[amp] = mean_loss(large_trainer(patient, label, f"amp={amp}", "optimizer.lr=0.01"), steps)
    facts, plain = {"losses": losses, "skipped_steps": skipped["fp16"]}, losses["off"]
    for amp, loss in losses.items():
        if not abs(loss - plain) < NEAR * abs(plain):
            raise Trouble(f"the mean loss of {steps} steps is {loss:.4g} in {amp}, and {plain:.4g} in fp32", facts)
    text = ", ".join(f"{'fp32' if amp == 'off' else amp} {loss:.4f}" for amp, loss in losses.items())
    return Result(f"mean loss of {steps} steps {text}; {counted(skipped['fp16'], 'step')} skipped in fp16", facts)


def mean_loss(trainer: Trainer, steps: int) -> tuple[float, int]:
    """Return the mean loss, and how many steps had infinite gradients and were skipped."""
    state = trainer.start()
    state.method.train()
    losses, scales = [], [state.scaler.get_scale() if state.scaler else 1.0]
    for step in islice(endless_steps(trainer, state), steps):
        losses.append(float(step.loss.detach()))
        scales.append(state.scaler.get_scale() if state.scaler else 1.0)
    return fmean(losses), sum(after < before for before, after in pairwise(scales))


def resumes(patient: Patient) -> Result:
    """Require that a training saved, loaded and gone on with equals an unbroken one, in a warm-up and after it."""
    for name, amp in product(("sgd", "adam"), ("off", "fp16")):
        trainer = small_trainer(patient, name, amp)
        whole = trained_until(trainer, trainer.start(), 4)
        for broken_off in (1, 3):
            saved = io.BytesIO()
            torch.save(state_to_plain(trained_until(trainer, trainer.start(), broken_off)), saved)
            taken_up = state_from_plain(trainer, read_plain(saved.getvalue()))
            if values(trained_until(trainer, taken_up, 4)) != values(whole):
                raise Trouble(f"{name} with amp {amp}, interrupted after {broken_off} of 4 epochs, ends in other bits")
    return Result("SGD and Adam, single and half precision: saved, loaded and continued = uninterrupted, bit by bit")


def small_trainer(patient: Patient, optimizer: str, amp: str) -> Trainer:
    rate = ["optimizer.lr=0.05"] if optimizer == "sgd" else ["optimizer.lr=0.001", "optimizer.momentum=0"]
    task = load_task(SMALL_TASK, [f"amp={amp}", f"optimizer.name={optimizer}", *rate])
    job = replace(job_of(task, task.reference, patient, warmup_epochs=2, **SMALL), task=replace(task, epochs=4))
    return Trainer(job, patient.methods, noise(96, describe(task.data), patient.device), patient.device)


def trained_until(trainer: Trainer, state: State, epoch: int) -> State:
    while state.epoch < epoch:
        state = trainer.run_epoch(state)
    return state


def values(state: State) -> list[Any]:
    """Return all numbers of a state as plain values that compare."""
    plain, found = state_to_plain(state), [state.history]
    for part in (plain["method"], *plain["optimizer"].values()):
        found += [value.cpu().tolist() if isinstance(value, torch.Tensor) else value for value in part.values()]
    return found


def memory(patient: Patient) -> Result:
    """Require that tensors take no more memory after many steps than after a few."""
    if not has_streams(patient.device):
        raise LeftOut("memory of the CPU is not torch's alone")
    trainer = large_trainer(patient, load_task(LARGE).reference)
    state = own_phase(trainer)
    state.method.train()
    steps, held = endless_steps(trainer, state), []
    for _ in range(3):
        for _ in range(8):
            next(steps)
        wait_for(patient.device)
        held.append(int(module_of(patient.device).memory_allocated(patient.device)))
    if held[2] > held[1]:
        raise Trouble(f"memory grew by {text_from_bytes(held[2] - held[1])} from step 16 to step 24")
    return Result(f"{text_from_bytes(held[2])} after 16 and after 24 steps", {"bytes": held})


def two_devices(patient: Patient) -> Result:
    """Take two steps of a job that two devices share."""
    device = patient.device
    if not has_streams(device) or device_count(device.type) < 2:
        raise LeftOut("there is one device")
    if device.type not in BACKENDS:
        raise LeftOut(f"torch has no way for {device.type} devices to exchange gradients")
    shared_steps(patient)
    return Result("two steps of a job on two devices")


def shared_steps(patient: Patient) -> None:
    """Take two steps of a job by two processes."""
    task = load_task(SMALL_TASK)
    with tempfile.TemporaryDirectory() as folder:
        folders = Folders(Path(folder), Path(folder))
        sha256 = load(task.data, folders)[1]
        job = replace(job_of(task, task.baseline, patient), max_steps=2, data_sha256=sha256)
        context = Context(Path(folder), folders, patient.methods, gpus_per_job=2)
        run_on_ranks(job, context, torch.device(patient.device.type, 0), lambda values: None)
