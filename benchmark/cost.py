"""What a plan will cost: device-hours from the step times of earlier records, or of a few steps measured now."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import torch

from benchmark.cache import Folders
from benchmark.data import batch_bounds, prepare
from benchmark.devices import data_budget
from benchmark.interface import Progress
from benchmark.jobs import Job, Methods
from benchmark.runner import make_deterministic
from benchmark.sources import Facts
from benchmark.store import Store
from benchmark.trainer import State, Trainer, take_step

SAME = ("network", "augment", "optimizer", "batch_size", "threads", "channels_last", "amp", "compile")
"""Fields of a job's identity that the time of a step depends on; of the data, the source and the size of images."""
UNTIMED_STEPS, TIMED_STEPS = 2, 4


@dataclass
class Paces:
    """Seconds per step, by (job id or method file, phase); `warmup` is the phase that a warm-up method trains."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, job_id: str, method: str, step_seconds: dict[str, Any]) -> None:
        for phase in {"warmup", "own"} & step_seconds.keys():
            for name in (job_id, method, ""):
                self.seconds.setdefault((name, phase), []).append(step_seconds[phase])

    def of(self, job: Job, phase: str) -> float | None:
        """The nearest that is known: this job's, its method's, that of any method of the task."""
        names = [(job.id, phase), (job.method, phase)]
        if phase == "warmup" and job.trunk is not None:
            names += [(job.trunk.id, "own"), (job.trunk.method, "own"), ("", "warmup")]
        return next((median(self.seconds[name]) for name in [*names, ("", "own")] if name in self.seconds), None)


def known_paces(jobs: Sequence[Job], store: Store, device: str) -> Paces:
    """From the records of a task that were made on such a device with such networks."""
    paces = Paces()
    if not jobs:
        return paces
    like = traits(jobs[0].identity())
    for record in store.records(jobs[0].task.name):
        found = record["provenance"].get("step_seconds", {})
        if found.get("device") == device and traits(record["identity"]) == like:
            paces.add(record["job"], record["method"], found)
    return paces


def traits(identity: dict[str, Any]) -> list[Any]:
    data = identity["data"]
    return [data["source"], data.get("image_size"), *(identity.get(name) for name in SAME)]


def device_hours(jobs: Sequence[Job], paces: Paces, facts: Facts) -> float | None:
    """Of the jobs that train; None as long as no step time is known for one of them."""
    total = 0.0
    for job in jobs:
        steps = steps_per_epoch(job, facts)
        warmup = 0 if job.branches else min(job.warmup_epochs, job.last_epoch)
        for phase, epochs in (("warmup", warmup), ("own", job.epochs - warmup)):
            pace = paces.of(job, phase)
            if epochs > 0 and pace is None:
                return None
            total += max(epochs, 0) * steps * (pace or 0.0)
    return total / 3600


def steps_per_epoch(job: Job, facts: Facts) -> int:
    held_out = round(job.task.data.val * facts.num_train)
    return len(batch_bounds(facts.num_train - held_out, job.task.batch_size))


def measure_paces(
    jobs: Sequence[Job], folders: Folders, methods: Methods, device: torch.device, tell: Callable[[str], None]
) -> Paces:
    """A few steps of each phase of each kind of job, the first ones untimed."""
    paces, kinds = Paces(), {job.id: job for job in jobs if job.epochs}
    for index, job in enumerate(kinds.values()):
        tell(f"measuring {job.task.name} {job.label} ({index + 1} of {len(kinds)})")
        make_deterministic(job.task.threads, device)
        data = prepare(job.task.data, folders, job.split_seed, device, data_budget(device, 1))
        trainer = Trainer(replace(job, max_steps=0), methods, data, device)
        state = trainer.start()
        found = {}
        if job.warmup_epochs:
            found["warmup"] = step_time(trainer, state)
            state = trainer.branch(state)
        found["own"] = step_time(trainer, state)
        paces.add(job.id, job.method, found)
    return paces


def step_time(trainer: Trainer, state: State) -> float:
    """The median of a few steps as the trainer takes them; reading the loss waits for the device."""
    task, seed = trainer.job.task, trainer.job.seed
    num_steps, seconds = len(trainer.data.batch_sizes(task.batch_size)), []
    state.method.train()
    batches = trainer.data.batches(task.batch_size, seed, state.epoch, task.augment, state.method.num_views)
    started = time.perf_counter()
    for index, batch in zip(range(UNTIMED_STEPS + TIMED_STEPS), batches, strict=False):
        progress = Progress(state.epoch, task.epochs, index, num_steps)
        float(take_step(state.method, state.optimizer, batch, seed, progress, state.scaler).loss.detach())
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
    return median(seconds[UNTIMED_STEPS:] or seconds)
