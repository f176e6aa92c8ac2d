"""What is left to do of a suite, how long each job of it takes, and whom it waits for."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmark.cost import Epochs, Paces, epochs_of, seconds_of
from benchmark.errors import UserError
from benchmark.jobs import Job, Suite, in_line
from benchmark.launch import branching_point
from benchmark.schedule import Device, Schedule, Work, simulate
from benchmark.store import Store
from benchmark.trunks import share_warmups

Pace = Callable[[Sequence[Job]], Paces]
"""What a step of these jobs takes."""


@dataclass(frozen=True)
class Outlook:
    suite: Suite
    states: Mapping[Path, str]
    missing: list[Job]
    to_run: list[Job]
    """What is missing, with the warm-ups that it shares."""
    saved: Mapping[Path, int]
    """Epochs that unfinished jobs need not train again."""
    paces: Paces
    store: Store

    def epochs(self, job: Job) -> Epochs:
        return epochs_of(job, self.store, saved=self.saved.get(job.folder, 0))

    def seconds(self, job: Job) -> float | None:
        return seconds_of(job, self.epochs(job), self.paces, self.suite.facts)

    def hours(self, jobs: Sequence[Job]) -> float | None:
        """Of one device; None as long as no step time is known for one of the jobs."""
        each = [self.seconds(job) for job in jobs]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) / 3600 if len(known) == len(each) else None


def look_ahead(suite: Suite, store: Store, pace: Pace, *, share: bool) -> Outlook:
    states = {job.folder: store.state(job.folder) for job in suite.jobs()}
    missing = [job for job in suite.jobs() if states[job.folder] in ("new", "partial")]
    to_run = share_warmups(missing, store) if share else missing
    saved = {job.folder: saved_epochs(job, store) for job in to_run if store.has_checkpoint(job.folder)}
    return Outlook(suite, states, missing, to_run, saved, pace(to_run), store)


def saved_epochs(job: Job, store: Store) -> int:
    payload = next(store.checkpoints(job.folder, ours=False), None)
    plain = {} if payload is None else torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    return int(plain.get("epoch", 0))


def works_of(outlook: Outlook, most_per_device: int = 1) -> list[Work]:
    """The jobs to run, in line; none where a step time is not known."""
    if outlook.hours(outlook.to_run) is None:
        return []
    left_by = {(job.snapshot_folder, epoch): job for job in outlook.to_run for epoch in job.snapshots}
    folders = {job.folder for job in outlook.to_run}
    works = []
    for job in outlook.to_run:
        needs = {str(need.folder): 1.0 for need in job.needs if need.folder in folders}
        point = branching_point(job)
        if point is not None and point in left_by:
            trunk = left_by[point]
            needs[str(trunk.folder)] = part_at(trunk, job.warmup_epochs, outlook)
        share = min(share_of(job), 1 / most_per_device)
        works.append(Work(str(job.folder), outlook.seconds(job) or 0.0, needs, share))
    return works


def part_at(trunk: Job, epoch: int, outlook: Outlook) -> float:
    """How much of a trunk is over when it leaves the snapshot of an epoch; what is not epochs is spread over them."""
    begun = outlook.saved.get(trunk.folder, 0)
    return max(epoch - begun, 0) / max(trunk.last_epoch - begun, 1)


def share_of(job: Job) -> float:
    gpus = job.task.resources.gpus
    if not 0 < gpus <= 1:
        raise UserError(
            f"{job.task.name}: resources.gpus = {gpus:g} has no place in a simulated cluster; set a share of a device "
            "above 0 and up to 1, e.g. 0.25"
        )
    return gpus


@dataclass(frozen=True)
class Forecast:
    """A run that has not been made."""

    schedule: Schedule
    jobs: Mapping[str, Job]
    """By the name of their work."""
    unknown: tuple[str, ...]
    """Tasks left out, for no step time is known."""
    steps_only: tuple[str, ...]
    """Tasks of whose time beside the steps nothing is known."""


def simulate_all(outlooks: Sequence[Outlook], devices: Sequence[Device], most_per_device: int = 1) -> Forecast:
    """The jobs of all suites in line, as a run would have them."""
    jobs = {str(job.folder): job for job in in_line(job for outlook in outlooks for job in outlook.to_run)}
    known = {work.name: work for outlook in outlooks for work in works_of(outlook, most_per_device)}
    works = [known[name] for name in jobs if name in known]
    busy = [outlook for outlook in outlooks if outlook.to_run]
    unknown = tuple(outlook.suite.task.name for outlook in busy if outlook.hours(outlook.to_run) is None)
    bare = tuple(outlook.suite.task.name for outlook in busy if outlook.paces.outside(outlook.to_run[0]) is None)
    start = min((outlook.paces.start for outlook in busy if outlook.paces.start), default=0.0)
    return Forecast(simulate(works, devices, start), jobs, unknown, tuple(name for name in bare if name not in unknown))
