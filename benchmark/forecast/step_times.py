"""What a plan will cost: device-hours from the step times of earlier records, or of a few steps measured now."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import torch

from benchmark.cache import Folders
from benchmark.config import TaskConfig
from benchmark.data import Split, batch_bounds, prepare
from benchmark.devices import data_budget, wait_for
from benchmark.interface import Progress, Step
from benchmark.jobs import Job, Methods
from benchmark.networks import build_network
from benchmark.provenance import process_age
from benchmark.runner import prepare_device
from benchmark.sources import Facts
from benchmark.store import Store
from benchmark.trainer import State, Trainer, take_step
from benchmark.units import text_from_seconds, two_digits

SAME = ("network", "augment", "optimizer", "batch_size", "threads", "channels_last", "amp", "compile", "tf32")
"""Fields of a job's identity that the time of a step depends on; of the data, the source and the size of images."""
UNTIMED_STEPS, TIMED_STEPS, TIMED_SECONDS = 2, 4, 1.0
"""So many steps are measured, or, where these are fast, as many as take so long."""
FEW_IMAGES = 8


@dataclass
class Paces:
    """Seconds per step, by (job id or method file, phase); `warmup` is the phase that a warm-up method trains.

    `later` is what a job takes beside its epochs, `first` the same of a worker's first job, its start included.
    """

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    cut_short: bool = False
    """Whether a person had no time to have them all measured."""

    def add(self, job_id: str, method: str, seconds: dict[str, Any]) -> None:
        for phase in {"warmup", "own", "first", "later"} & seconds.keys():
            for name in (job_id, method, ""):
                self.seconds.setdefault((name, phase), []).append(seconds[phase])

    def of(self, job: Job, phase: str) -> float | None:
        """The nearest that is known: this job's, its method's, that of any method of the task."""
        names = [(job.id, phase), (job.method, phase)]
        if phase == "warmup" and job.trunk is not None:
            names += [(job.trunk.id, "own"), (job.trunk.method, "own"), ("", "warmup")]
        return self.nearest([*names, ("", "own")])

    def outside(self, job: Job) -> float | None:
        """Beside its epochs, in a worker that has done others."""
        return self.nearest([(job.id, "later"), (job.method, "later"), ("", "later")])

    @property
    def start(self) -> float:
        """What a worker takes before its first job, as far as it is known."""
        first, later = (self.nearest([("", name)]) or 0.0 for name in ("first", "later"))
        return max(first - later, 0.0)

    def nearest(self, names: Sequence[tuple[str, str]]) -> float | None:
        return next((median(self.seconds[name]) for name in names if name in self.seconds), None)


def known_paces(jobs: Sequence[Job], store: Store, device: str) -> Paces:
    """From the records of a task that were made on such a device with such networks."""
    paces = Paces()
    if not jobs:
        return paces
    like = traits(jobs[0].identity())
    for record in store.records(jobs[0].task.name):
        for field_name in ("step_seconds", "outside_seconds"):
            found = record["provenance"].get(field_name, {})
            if found.get("device") == device and traits(record["identity"]) == like:
                paces.add(record["job"], record["method"], found)
    return paces


def traits(identity: dict[str, Any]) -> list[Any]:
    data = identity["data"]
    return [data["source"], data.get("image_size"), *(identity.get(name) for name in SAME)]


@dataclass(frozen=True)
class Epochs:
    """What a job trains itself, by phase."""

    warmup: int = 0
    own: int = 0

    @property
    def total(self) -> int:
        return self.warmup + self.own


def epochs_of(job: Job, store: Store, *, saved: int = 0) -> Epochs:
    """Beyond the first `saved`. One that takes over a finished run whose weights are gone trains it again."""
    if job.needs:
        gone = job.takes_over and store.state(job.needs[0].folder) == "done"
        return Epochs(own=job.task.epochs if gone and not store.has_checkpoint(job.needs[0].folder) else 0)
    first = max(saved, job.warmup_epochs if job.branches else 0)
    warmup = max(min(job.warmup_epochs, job.last_epoch) - first, 0)
    return Epochs(warmup, max(job.last_epoch - first - warmup, 0))


def seconds_of(job: Job, epochs: Epochs, paces: Paces, facts: Facts) -> float | None:
    """Of a job alone on a device; None as long as no step time is known for it."""
    total, steps = paces.outside(job) or 0.0, steps_per_epoch(job, facts)
    for phase, count in vars(epochs).items():
        pace = paces.of(job, phase)
        if count and pace is None:
            return None
        total += count * steps * (pace or 0.0)
    return total


def steps_per_epoch(job: Job, facts: Facts) -> int:
    held_out = round(job.task.data.val * facts.num_train)
    return len(batch_bounds(facts.num_train - held_out, job.task.batch_size))


def measure_paces(
    jobs: Sequence[Job], folders: Folders, methods: Methods, device: torch.device, tell: Callable[[str], None]
) -> Paces:
    """A few steps of each kind, the first ones untimed, and what stands before and after them. Ctrl-C ends it early."""
    paces, kinds = Paces(), kinds_of(jobs)
    for index, job in enumerate(kinds):
        tell(f"measuring {job.task.name} {job.label} ({index + 1} of {len(kinds)})")
        try:
            if index == 0:
                set_up(job, folders, methods, device)
                started = {"first": process_age()}
            found, steps = measured(job, folders, methods, device)
        except KeyboardInterrupt:
            if not index:
                raise
            tell(f"interrupted: {index} of {len(kinds)} kinds of step are measured, the others count at their median")
            paces.cut_short = True
            break
        paces.add(job.id, job.method, found | (started if index == 0 else {}))
        epoch = text_from_seconds(steps * found["own"])
        tell(f"{job.task.name} {job.label}: {two_digits(1000 * found['own'])} ms a step, {epoch} an epoch")
    return paces


def kinds_of(jobs: Iterable[Job]) -> list[Job]:
    """One for each kind of step, which the labels, coverages and seeds of a file share. So do warm-ups."""
    kinds: dict[str, Job] = {}
    for job in (job for job in jobs if job.epochs):
        for each in (None if job.branches else job.trunk, job):
            if each is not None:
                kinds.setdefault(each.method, each)
    return list(kinds.values())


def measured(job: Job, folders: Folders, methods: Methods, device: torch.device) -> tuple[dict[str, float], int]:
    """Its times, and the steps of an epoch."""
    found, started = {}, time.perf_counter()
    trainer, state = set_up(job, folders, methods, device)
    found["later"] = time.perf_counter() - started
    if job.warmup_epochs:
        if job.trunk is None:
            found["warmup"] = step_time(trainer, state)
        state = trainer.branch(state)
    found["own"] = step_time(trainer, state)
    splits = (trainer.data.test, trainer.data.val)
    found["later"] += sum(evaluation_time(trainer, state, split) for split in splits if split is not None)
    return found, len(trainer.data.batch_sizes(job.task.batch_size))


def rough_paces(task: TaskConfig, facts: Facts, device: torch.device) -> Paces:
    """Of a plain step, from one way forth and back of a few made-up images: seconds, where a probe takes minutes."""
    device, count = prepare_device(task, device), min(FEW_IMAGES, task.batch_size)
    network = build_network(task.network, facts.num_classes, facts.shape).to(device)
    network.set_speed(channels_last=task.channels_last, amp=task.amp, compiled=False)
    images = torch.zeros(count, *facts.shape, device=device)
    for _ in range(2):  # the first time counts for nothing
        started = time.perf_counter()
        network(images)[0].logsumexp(1).mean().backward()
    seconds = time.perf_counter() - started
    return Paces({("", "own"): [seconds * task.batch_size / count]})


def set_up(job: Job, folders: Folders, methods: Methods, device: torch.device) -> tuple[Trainer, State]:
    device = prepare_device(job.task, device)
    budget = data_budget(device, 1)
    data = prepare(job.task.data, folders, job.split_seed, device, budget, held_out=job.held_out)
    trainer = Trainer(replace(job, max_steps=0), methods, data, device)
    return trainer, trainer.start()


def step_time(trainer: Trainer, state: State) -> float:
    """The mean of a few steps as the trainer takes them, and its part of an epoch's validation."""
    num_steps = len(trainer.data.batch_sizes(trainer.job.task.batch_size))
    state.method.train()
    steps = endless_steps(trainer, state)
    seconds_for(UNTIMED_STEPS, steps, trainer.device)
    count, seconds = TIMED_STEPS, seconds_for(TIMED_STEPS, steps, trainer.device)
    if seconds < TIMED_SECONDS:
        count = math.ceil(count * TIMED_SECONDS / seconds)
        seconds = seconds_for(count, steps, trainer.device)
    val = trainer.data.val
    validation = evaluation_time(trainer, state, val) if val is not None and trainer.validates(state.method) else 0.0
    return seconds / count + validation / num_steps


def endless_steps(trainer: Trainer, state: State) -> Iterator[Step]:
    """Take a step each time; the epoch begins anew when its batches are used up."""
    task, seed = trainer.job.task, trainer.job.seed
    num_steps = len(trainer.data.batch_sizes(task.batch_size))
    while True:
        batches = trainer.data.batches(task.batch_size, seed, state.epoch, task.augment, state.method.num_views)
        for index, batch in enumerate(batches):
            progress = Progress(state.epoch, task.epochs, index, num_steps)
            yield take_step(state.method, state.optimizer, batch, seed, progress, state.scaler)


def seconds_for(count: int, steps: Iterator[Step], device: torch.device) -> float:
    """Of so many steps. The host waits for the device before and after them, and never in between."""
    wait_for(device)
    started = time.perf_counter()
    for _ in range(count):
        next(steps)
    wait_for(device)
    return time.perf_counter() - started


def evaluation_time(trainer: Trainer, state: State, split: Split) -> float:
    """Of a whole split, from a few of its batches; bringing the logits back waits for the device."""
    few = replace(trainer, job=replace(trainer.job, max_steps=TIMED_STEPS))
    few.predict(state.method, split).logits.cpu()
    started = time.perf_counter()
    few.predict(state.method, split).logits.cpu()
    return (time.perf_counter() - started) * max(1.0, len(split) / (TIMED_STEPS * trainer.job.task.eval_batch_size))
