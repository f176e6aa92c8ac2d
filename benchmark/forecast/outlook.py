"""Find what is left to do of a suite, how long each job takes, and which jobs it waits for; simulate the run."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmark.base.errors import UserError
from benchmark.forecast.step_times import Epochs, StepTimes, epochs_of, seconds_of
from benchmark.jobs.job import Job
from benchmark.jobs.shared_warmup import share_averages, share_warmups
from benchmark.jobs.suite import Suite, in_line
from benchmark.launch.placement import Device, Schedule, Work, make_works, simulate
from benchmark.store.store import Store

FindStepTimes = Callable[[Sequence[Job]], StepTimes]
"""A function that returns what is known about the step times of these jobs."""


@dataclass(frozen=True)
class Outlook:
    """What is left to do of a suite, and what is known about its step times."""

    suite: Suite
    states: Mapping[Path, str]
    missing: list[Job]
    to_run: list[Job]
    """The missing jobs, with the warm-ups that they share."""
    saved: Mapping[Path, int]
    """Epochs that unfinished jobs need not train again."""
    step_times: StepTimes
    store: Store

    def epochs(self, job: Job) -> Epochs:
        return epochs_of(job, self.store, saved=self.saved.get(job.folder, 0))

    def seconds(self, job: Job) -> float | None:
        return seconds_of(job, self.epochs(job), self.step_times, self.suite.facts)

    def hours(self, jobs: Sequence[Job]) -> float | None:
        """Return the hours that the jobs take on one device; None if the step time of one of them is not known."""
        known = [seconds for job in jobs if (seconds := self.seconds(job)) is not None]
        return sum(known) / 3600 if len(known) == len(jobs) else None

    def awaited_part(self, trunk: Job, job: Job) -> float:
        """Return the part of a trunk's time before a job can branch off; time outside epochs is spread over them."""
        saved = self.saved.get(trunk.folder, 0)
        return max(job.warmup_epochs - saved, 0) / max(trunk.last_epoch - saved, 1)


def look_ahead(suite: Suite, store: Store, find_step_times: FindStepTimes, *, share: bool) -> Outlook:
    """Return what is left to do of a suite; with `share`, common warm-ups are trained once."""
    states = {job.folder: store.state(job.folder) for job in suite.jobs()}
    missing = share_averages([job for job in suite.jobs() if states[job.folder] in ("new", "partial")])
    to_run = share_warmups(missing, store) if share else missing
    saved = {job.folder: saved_epochs(job, store) for job in to_run if store.has_checkpoint(job.folder)}
    return Outlook(suite, states, missing, to_run, saved, find_step_times(to_run), store)


def saved_epochs(job: Job, store: Store) -> int:
    """Return how many epochs the last checkpoint of a job has finished; 0 without one."""
    payload = next(store.checkpoints(job.folder, ours=False), None)
    if payload is None:
        return 0
    return int(torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu").get("epoch", 0))


def works_of(outlook: Outlook, most_per_device: int = 1) -> list[Work]:
    """Return the jobs to run as work for the simulation, in order; nothing if a step time is not known."""
    if outlook.hours(outlook.to_run) is None:
        return []
    return make_works(
        outlook.to_run,
        lambda job: outlook.seconds(job) or 0.0,
        outlook.awaited_part,
        lambda job: min(share_of(job), 1 / most_per_device),
    )


def share_of(job: Job) -> float:
    """Return the share of a device that a job takes."""
    gpus = job.task.resources.gpus
    if not 0 < gpus <= 1:
        raise UserError(
            f"{job.task.name}: resources.gpus = {gpus:g} cannot be simulated; expected a share of a device above "
            "0 and up to 1, e.g. 0.25"
        )
    return gpus


@dataclass(frozen=True)
class Forecast:
    """A simulated run of all jobs."""

    schedule: Schedule
    jobs: Mapping[str, Job]
    """The jobs by the name of their work."""
    unknown: tuple[str, ...]
    """Tasks that are left out because a step time is not known."""
    steps_only: tuple[str, ...]
    """Tasks whose step times are known, but not their time outside epochs."""
    untimed: tuple[str, ...] = ()
    """Evaluation sets that are left out because no run was evaluated on them yet."""


def simulate_all(outlooks: Sequence[Outlook], devices: Sequence[Device], most_per_device: int = 1) -> Forecast:
    """Simulate the jobs of all suites on these devices, in the order in which a run would start them."""
    busy = {outlook.suite.name: outlook for outlook in outlooks if outlook.to_run}
    jobs = {str(job.folder): job for job in in_line(job for outlook in busy.values() for job in outlook.to_run)}
    works = {work.name: work for outlook in busy.values() for work in works_of(outlook, most_per_device)}
    begin = min(filter(None, (outlook.step_times.start for outlook in busy.values())), default=0.0)
    schedule = simulate([works[name] for name in jobs if name in works], devices, begin)
    lacking = [name for name, outlook in busy.items() if outlook.hours(outlook.to_run) is None]
    untimed = tuple(name for name in lacking if busy[name].suite.evaluated)
    unknown = tuple(name for name in lacking if name not in untimed)
    steps_only = [name for name, outlook in busy.items() if outlook.step_times.outside(outlook.to_run[0]) is None]
    return Forecast(schedule, jobs, unknown, tuple(name for name in steps_only if name not in lacking), untimed)
