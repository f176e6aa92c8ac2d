"""Find how long training steps take, from earlier records or from a few steps measured now, and the time of jobs."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import Any

import torch

from benchmark.base.files import say
from benchmark.base.units import text_from_seconds, two_digits
from benchmark.config.ingredient_names import ALL
from benchmark.config.ingredients import NONE
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders
from benchmark.data.dataset import Split, batch_bounds, prepare
from benchmark.data.devices import data_budget, wait_for
from benchmark.data.images import Facts
from benchmark.interface import Progress, Step
from benchmark.jobs.job import Job, Methods
from benchmark.store.store import Store
from benchmark.train.networks import build_network
from benchmark.train.provenance import process_age
from benchmark.train.run_job import prepare_device
from benchmark.train.steps.step import take_step
from benchmark.train.trainer import State, Trainer, network_of

TIMED_FIELDS = (
    *("network", "own_parts", "augment", "optimizer", "batch_size", "threads"),
    *("channels_last", "amp", "compile", "tf32"),
)
"""Fields of a job's identity that decide the time of a step; of the data, the source and the image size do."""
UNTIMED_STEPS, TIMED_STEPS, TIMED_SECONDS = 2, 4, 1.0
"""At least TIMED_STEPS are timed; where these are fast, as many as take TIMED_SECONDS."""
FEW_IMAGES = 8
PER_STEP = ("warmup", "own")
PLAIN: Mapping[str, Any] = MappingProxyType({})
"""The identity of a job without ingredients."""
CONSTANTS = ("rho", "sigma", "smoothing", "statistics", "cosine_scale")
"""Of ingredients; they cost nothing."""


@dataclass
class StepTimes:
    """Seconds by (job id, method file or "" for any, phase). Per step: `own`, and `warmup` for a shared warm-up phase.

    Steps that take several passes, as some ingredients make them, count as so many steps. Per job: `later` is its time
    outside epochs, `first` the same for a worker's first job, with the worker's start.
    """

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    cut_short: bool = False
    """Whether the user interrupted the measurement."""

    def add(self, job_id: str, method: str, seconds: Mapping[str, float], identity: Mapping[str, Any] = PLAIN) -> None:
        """Add what a job with this identity took. The steps of a second stage say nothing of other methods."""
        for phase in {"warmup", "own", "first", "later"} & seconds.keys():
            in_stage = phase == "own" and has_stage(identity)
            passes = passes_of(identity) if phase in PER_STEP and not in_stage else 1
            for name in (job_id, method) if in_stage else (job_id, method, ""):
                self.seconds.setdefault((name, phase), []).append(seconds[phase] / passes)

    def of(self, job: Job, phase: str) -> float | None:
        """Return the seconds per step: of this job if known, else of its method, else of any method of the task."""
        names = [(job.id, phase), (job.method, phase)]
        if phase == "warmup" and job.trunk is not None:
            names += [(job.trunk.id, "own"), (job.trunk.method, "own"), ("", "warmup")]
        found = self.nearest([*names, ("", "own")])
        in_stage = job.stage_epochs and phase == "own"
        return None if found is None else found * (1 if in_stage else passes_of(job.identity()))

    def outside(self, job: Job) -> float | None:
        """Return the seconds of a job outside its epochs, in a warm worker (one that has already run a job)."""
        return self.nearest([(job.id, "later"), (job.method, "later"), ("", "later")])

    @property
    def start(self) -> float:
        """Return the seconds that a worker takes before its first job; 0 if not known."""
        first, later = (self.nearest([("", name)]) or 0.0 for name in ("first", "later"))
        return max(first - later, 0.0)

    def nearest(self, names: Sequence[tuple[str, str]]) -> float | None:
        """Return the median of the first of these names that is known."""
        return next((median(self.seconds[name]) for name in names if name in self.seconds), None)


def known_step_times(jobs: Sequence[Job], store: Store, device: str) -> StepTimes:
    """Return the times in the records of the jobs' task: those of the same kind of device, network and images."""
    step_times = StepTimes()
    if not jobs:
        return step_times
    wanted = timed_settings(jobs[0].identity())
    for record in store.records(jobs[0].results_name):
        for timed in (record.provenance.step_seconds, record.provenance.outside_seconds):
            if timed is not None and timed.device == device and timed_settings(record.identity) == wanted:
                step_times.add(record.job, record.method, timed.seconds, record.identity)
    return step_times


def timed_settings(identity: Mapping[str, Any]) -> list[Any]:
    """Return all settings that decide the time of a pass."""
    data, plain = identity["data"], dict(identity)
    for table, choice in (each.field.split(".") for each in ALL if each.field.split(".")[0] in TIMED_FIELDS):
        plain[table] = {name: value for name, value in plain[table].items() if name not in (choice, *CONSTANTS)}
    return [data["source"], data.get("image_size"), *(plain.get(name) for name in TIMED_FIELDS)]


def has_stage(identity: Mapping[str, Any]) -> bool:
    """Tell whether a job trains a second stage: only such a method has a setting for the images of it."""
    return "images" in identity.get("config", {})


def passes_of(identity: Mapping[str, Any]) -> int:
    """Return how many forward and backward passes a step takes: two if sharpness-aware, twice as many with RegMixup."""
    sharp = bool(identity.get("optimizer", {}).get("sharpness", NONE) != NONE)
    beside = bool(identity.get("mixing", {}).get("name") == "regmixup")
    return (1 + sharp) * (1 + beside)


@dataclass(frozen=True)
class Epochs:
    """Number of epochs that a job trains itself, by phase."""

    warmup: int = 0
    own: int = 0

    @property
    def total(self) -> int:
        return self.warmup + self.own


def epochs_of(job: Job, store: Store, *, saved: int = 0) -> Epochs:
    """Return the epochs still to train after `saved`; taking over a finished run without weights trains it again."""
    if job.needs:
        gone = job.takes_over and store.state(job.needs[0].folder) == "done"
        return Epochs(own=job.task.epochs if gone and not store.has_checkpoint(job.needs[0].folder) else 0)
    first = max(saved, job.warmup_epochs if job.branches else 0)
    warmup = max(min(job.warmup_epochs, job.last_epoch) - first, 0)
    return Epochs(warmup, max(job.last_epoch - first - warmup, 0))


def seconds_of(job: Job, epochs: Epochs, step_times: StepTimes, facts: Facts) -> float | None:
    """Return the seconds of a job that has a device for itself; None if its step time is not known.

    An evaluation has no steps, and is known by others of its set.
    """
    outside = step_times.outside(job)
    if job.evaluates and outside is None:
        return None
    total = outside or 0.0
    for phase, count in vars(epochs).items():
        seconds, steps = step_times.of(job, phase), steps_per_epoch(job, facts, phase)
        if count and seconds is None:
            return None
        total += count * steps * (seconds or 0.0)
    return total


def steps_per_epoch(job: Job, facts: Facts, phase: str = "own") -> int:
    """Return the number of batches of an epoch; a second stage may train on the validation images."""
    held_out = round(job.task.data.val * facts.num_train)
    on_validation = job.stage_epochs and phase == "own" and job.config.get("images") == "validation"
    return len(
        batch_bounds(held_out if on_validation and held_out else facts.num_train - held_out, job.task.batch_size)
    )


def measure_step_times(jobs: Sequence[Job], folders: Folders, methods: Methods, device: torch.device) -> StepTimes:
    """Measure a few steps of each kind, and the time outside epochs. Ctrl-C ends this early and keeps what is there."""
    step_times, kinds = StepTimes(), kinds_of(jobs)
    for index, job in enumerate(kinds):
        say(f"measuring {job.task.name} {job.label} ({index + 1} of {len(kinds)})")
        try:
            if index == 0:
                set_up(job, folders, methods, device)
                step_times.add(job.id, job.method, {"first": process_age()})
            seconds, steps = measure_job(job, folders, methods, device)
        except KeyboardInterrupt:
            if not index:
                raise
            say(f"interrupted: {index} of {len(kinds)} kinds of step are measured; the others get the median")
            step_times.cut_short = True
            break
        step_times.add(job.id, job.method, seconds, job.identity())
        epoch = text_from_seconds(steps * seconds["own"])
        say(f"{job.task.name} {job.label}: {two_digits(1000 * seconds['own'])} ms a step, {epoch} an epoch")
    return step_times


def kinds_of(jobs: Iterable[Job]) -> list[Job]:
    """Return one job for each kind of step. Jobs of one method file have the same steps, and so do their warm-ups."""
    kinds: dict[str, Job] = {}
    for job in jobs:
        if not job.epochs:
            continue
        if job.trunk is not None and not job.branches:
            kinds.setdefault(job.trunk.method, job.trunk)
        kinds.setdefault(job.method, job)
    return list(kinds.values())


def measure_job(job: Job, folders: Folders, methods: Methods, device: torch.device) -> tuple[dict[str, float], int]:
    """Return the seconds of a job by phase, and its number of steps per epoch."""
    seconds, started = {}, time.perf_counter()
    trainer, state = set_up(job, folders, methods, device)
    seconds["later"] = time.perf_counter() - started
    if job.warmup_epochs:
        if job.trunk is None:
            seconds["warmup"] = step_time(trainer, state)
        state = trainer.begin_phase(network_of(state.method), warmup=False)
        state.epoch = job.warmup_epochs
    seconds["own"] = step_time(trainer, state)
    splits = (trainer.data.test, trainer.data.val)
    seconds["later"] += sum(evaluation_time(trainer, state, split) for split in splits if split is not None)
    return seconds, len(trainer.data.batch_sizes(job.task.batch_size))


def rough_step_times(task: TaskConfig, facts: Facts, device: torch.device) -> StepTimes:
    """Estimate the time of a step from one pass of a few empty images: takes seconds, where real steps take minutes."""
    device, count = prepare_device(task, device), min(FEW_IMAGES, task.batch_size)
    network = build_network(task.network, facts.num_classes, facts.shape).to(device)
    network.set_speed(channels_last=task.channels_last, amp=task.amp, compiled=False)
    images = torch.zeros(count, *facts.shape, device=device)
    for _ in range(2):  # the first pass is a warm-up and is not counted
        started = time.perf_counter()
        network(images)[0].logsumexp(1).mean().backward()
    seconds = time.perf_counter() - started
    return StepTimes({("", "own"): [seconds * task.batch_size / count]})


def set_up(job: Job, folders: Folders, methods: Methods, device: torch.device) -> tuple[Trainer, State]:
    """Return the trainer of a job and its state before the first step."""
    device = prepare_device(job.task, device)
    budget, beside = data_budget(device, 1), bool(job.outliers_sha256)
    data = prepare(job.task.data, folders, job.split_seed, device, budget, held_out=job.held_out, with_outliers=beside)
    trainer = Trainer(replace(job, max_steps=0), methods, data, device)
    return trainer, trainer.start()


def step_time(trainer: Trainer, state: State) -> float:
    """Return the mean seconds of a few steps, as the trainer takes them, plus their share of an epoch's validation."""
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
    """Take a step each time; start the epoch again when its batches are used up."""
    task, seed = trainer.job.task, trainer.job.seed
    sizes = trainer.data_at(state.epoch).batch_sizes(task.batch_size)
    own = trainer.ranks.steps(state.method, seed, sizes, task.mixing)
    while True:
        for index, batch in enumerate(trainer.batches(state.method, state.epoch)):
            progress = Progress(state.epoch, task.epochs, index, len(sizes))
            yield take_step(own, state.optimizer, batch, seed, progress, state.scaler, state.sharpness)


def seconds_for(count: int, steps: Iterator[Step], device: torch.device) -> float:
    """Return the seconds of this many steps. The host waits for the device before and after them, never in between."""
    wait_for(device)
    started = time.perf_counter()
    for _ in range(count):
        next(steps)
    wait_for(device)
    return time.perf_counter() - started


def evaluation_time(trainer: Trainer, state: State, split: Split) -> float:
    """Return the seconds to predict a whole split, from a few batches; copying the logits waits for the device."""
    few = replace(trainer, job=replace(trainer.job, max_steps=TIMED_STEPS))
    few.predict(state.method, split).logits.cpu()
    started = time.perf_counter()
    few.predict(state.method, split).logits.cpu()
    return (time.perf_counter() - started) * max(1.0, len(split) / (TIMED_STEPS * trainer.job.task.eval_batch_size))
