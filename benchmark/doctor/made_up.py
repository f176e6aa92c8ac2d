"""Make work of the real shapes without real data: what a pixel shows does not change what it costs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmark.config.task import TaskConfig
from benchmark.data.dataset import DataSet, Split
from benchmark.data.devices import has_streams
from benchmark.data.images import Facts, Images
from benchmark.data.residency import place_on_device
from benchmark.data.sources import describe
from benchmark.doctor.examination import Patient
from benchmark.interface import Method
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.train.trainer import State, Trainer

PLENTY = 10**15
"""A budget that holds everything."""
CPU_BATCH = 8


def noise(count: int, facts: Facts, device: torch.device, budget: int = PLENTY) -> DataSet:
    """Return random pictures of a task's shape, on the device as far as the budget goes."""
    pictures = np.random.default_rng(0).integers(0, 256, (count, *facts.shape), dtype=np.uint8)
    images = Images.of(pictures, np.arange(count) % facts.num_classes)
    pixels = place_on_device([images], device, budget)[0]
    split = Split(pixels, torch.from_numpy(images.labels).to(device), images.rows.astype(np.int32))
    half = torch.full((facts.shape[0],), 0.5, device=device)
    return DataSet(split, None, split, half, half, facts.num_classes, facts.shape, None, "made up", split)


def job_of(task: TaskConfig, label: str, patient: Patient, **settings: Any) -> Job:
    """Return a job of a label; `settings` replace those of its method that it has."""
    alike = replace(task, data=replace(task.data, outliers=task.name))
    job = plan(alike, [label], [0], patient.methods, "made up", outliers=lambda: "made up")[0].jobs[0]
    known = {name: value for name, value in settings.items() if name in job.config}
    warmup = known.get("warmup_epochs", job.warmup_epochs)
    return replace(job, config={**job.config, **known}, warmup_epochs=warmup)


def trainer_for(task: TaskConfig, label: str, patient: Patient) -> Trainer:
    """Return a trainer of a label, on noise. A CPU gets a small part of a batch: enough to see how fast it computes."""
    small = replace(task, batch_size=task.batch_size if has_streams(patient.device) else CPU_BATCH)
    data = noise(4 * small.batch_size, describe(task.data), patient.device)
    return Trainer(job_of(small, label, patient), patient.methods, data, patient.device)


def own_phase(trainer: Trainer) -> State:
    """Return the state of a method at the beginning of what it trains itself."""
    state = trainer.start()
    return trainer.branch(state) if trainer.job.warmup_epochs else state


def trainable_labels(patient: Patient) -> Iterator[tuple[str, str]]:
    """Yield every label that trains something, with the file of its method."""
    for name in patient.methods.names():
        method = patient.methods.get(name)
        if issubclass(method, Method) and method.starts_from is None:
            yield from ((label, name) for label in method.labels)
