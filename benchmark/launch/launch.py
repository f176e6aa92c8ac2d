"""Many jobs: which can begin, what becomes of each. The store is the truth; other processes may work on it too."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from benchmark.devices import device_lost, free_memory, out_of_memory
from benchmark.errors import DeviceLost, NoRoom
from benchmark.files import NO_ROOM, cannot_write
from benchmark.jobs import Job
from benchmark.pulse import Interrupted, Report
from benchmark.remote import Mirror, patience
from benchmark.runner import Context, run_job
from benchmark.torchrun import RankLost, run_on_ranks
from benchmark.trainer import Diverged

Kind = Literal["started", "step", "epoch", "busy", "retried", "stopped", "done", "diverged", "failed"]
ENDS = ("done", "diverged", "failed")
TO_LOWER = (
    "lower --data-budget, --jobs-per-device or --workers, then run the same command again; a smaller batch "
    "(--set batch_size=N) is another job"
)
POLL_SECONDS = 0.5
"""How often to look whether another process has finished a job, or a person wants to stop."""
BRING_SECONDS = 60.0


@dataclass(frozen=True)
class Event:
    """What happened to a job, for whoever watches."""

    kind: Kind
    job: Job
    values: dict[str, Any] = field(default_factory=dict)


Watch = Callable[[Event], None]
Asked = Callable[[], bool]
"""Whether a person wants the run to stop as soon as what it has is saved."""


class Stop(Exception):
    """Raised by a watcher to end the run early; what runs is stopped, what is saved stays."""


@dataclass
class Waiting:
    """Jobs that are not begun, in order; one is ready when those it needs have ended."""

    jobs: list[Job]
    watch: Watch
    release: Callable[[Path, int], None] = lambda folder, epoch: None
    """Called with a snapshot that none of the jobs will branch off any more."""
    finished: Callable[[Path], bool] = lambda folder: False
    """Whether a job has been finished, perhaps by another process."""

    def __post_init__(self) -> None:
        self.unfinished = {job.folder for job in self.jobs}
        self.failed: set[Path] = set()
        self.branching = Counter(point for job in self.jobs if (point := branching_point(job)) is not None)
        self.to_come = {(job.snapshot_folder, epoch) for job in self.jobs for epoch in job.snapshots}
        self.not_before: dict[Path, float] = {}

    def take(self) -> Job | None:
        """The first job that can begin now: what it needs has ended, and its trunk is where it branches off."""
        now = time.monotonic()
        for job in list(self.jobs):
            if self.not_before.get(job.folder, 0.0) <= now and self.is_ready(job):
                self.jobs.remove(job)
                if not self.is_idle_trunk(job):
                    return job
                self.ended(Event("done", job))
        return None

    def is_ready(self, job: Job) -> bool:
        grown = branching_point(job) not in self.to_come
        return grown and not any(need.folder in self.unfinished for need in job.needs)

    def is_idle_trunk(self, job: Job) -> bool:
        """While we waited for it, another process may have finished all that branches off it."""
        children = (each for each in self.jobs if each.trunk and each.branches)
        folders = [each.folder for each in children if each.trunk and each.trunk.snapshot_folder == job.folder]
        return bool(job.until) and all(self.finished(folder) for folder in folders)

    def postpone(self, job: Job, seconds: float = 0.0) -> None:
        """Back to the front of the line, to be begun later."""
        self.jobs.insert(0, job)
        self.not_before[job.folder] = time.monotonic() + seconds

    def grown(self, job: Job, epoch: int) -> None:
        """A trunk has come so far; what it has not left by now, it never will."""
        self.to_come -= {(job.snapshot_folder, passed) for passed in job.snapshots if passed <= epoch}

    def ended(self, event: Event) -> None:
        """A job whose need failed fails with it; one whose trunk failed trains its warm-up itself."""
        self.grown(event.job, event.job.last_epoch)
        self.unfinished.discard(event.job.folder)
        self.watch(event)
        point = branching_point(event.job)
        if point is not None and event.kind != "failed":
            self.branching[point] -= 1
            if not self.branching[point]:
                self.release(*point)
        if event.kind == "failed":
            self.failed.add(event.job.folder)
            for job in [job for job in self.jobs if any(need.folder in self.failed for need in job.needs)]:
                if job in self.jobs:
                    self.jobs.remove(job)
                    reason = f"it needs {event.job.label} seed {event.job.seed}, which failed"
                    self.ended(Event("failed", job, {"reason": reason}))

    def hear(self, event: Event) -> None:
        if event.kind in ENDS:
            self.ended(event)
            if event.values.get("no_room"):
                raise NoRoom(event.values["reason"])
            return
        if event.kind in ("busy", "stopped"):
            self.postpone(event.job, POLL_SECONDS)
        if event.kind == "epoch":
            self.grown(event.job, event.values["epochs_done"])
        self.watch(event)


def branching_point(job: Job) -> tuple[Path, int] | None:
    """The snapshot that a job begins with."""
    return (job.trunk.snapshot_folder, job.warmup_epochs) if job.branches and job.trunk else None


@dataclass(frozen=True)
class OnRay:
    """Which Ray, and what of it to use."""

    address: str
    num_cpus: int | None = None
    """Of a local one; None: all that the machine has."""
    gpus: bool = True
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""


def launch(
    jobs: Sequence[Job],
    context: Context,
    devices: Sequence[str],
    watch: Watch,
    asked: Asked,
    retries: int = 0,
    *,
    in_workers: bool = True,
    ray: OnRay | None = None,
) -> None:
    """Run every job, one worker process per entry of `devices`, or one after the other in this process, or on Ray.

    A job that fails costs only those that need it. Ends with KeyboardInterrupt when it was asked to.
    """
    from benchmark.pool import Pool  # which needs this module

    store = context.store
    waiting = Waiting(list(jobs), watch, finished=lambda folder: store.state(folder) in ("done", "diverged"))
    if not context.keep_trunks:
        waiting.release = store.remove_snapshot
    if ray:
        from benchmark.cluster import RayPool
        from benchmark.connection import connected

        with connected(ray.address, ray.num_cpus) as engine:
            RayPool(engine, context, waiting, asked, retries, ray.gpus, ray.mirror).run()
    elif in_workers:
        Pool(context, waiting, asked, retries).run(devices[: len(jobs)])
    else:
        run_here(context, waiting, asked, devices[0])


def bringing(watch: Watch, mirror: Mirror) -> Watch:
    """Beside watching, brings results to their URL: those of a job when it ends, checkpoints now and then."""
    brought = time.monotonic()

    def watch_and_bring(event: Event) -> None:
        nonlocal brought
        watch(event)
        if event.kind in ENDS or time.monotonic() - brought > BRING_SECONDS:
            with patience():
                mirror.push()
            brought = time.monotonic()

    return watch_and_bring


def run_here(context: Context, waiting: Waiting, asked: Asked, device: str) -> None:
    def hear(event: Event) -> None:
        waiting.hear(event)
        if event.values.get("device_lost"):
            raise DeviceLost(event.values["reason"])

    while waiting.jobs:
        if asked():
            raise KeyboardInterrupt
        job = waiting.take()
        if job is None:
            time.sleep(POLL_SECONDS)
        else:
            run_watched(job, context, device, hear, asked)


def run_watched(job: Job, context: Context, device: str, watch: Watch, asked: Asked) -> None:
    """Run a job that no other process runs, and tell what happened; its failure is stored beside it."""
    try:
        with context.store.claim(job.folder) as ours:
            if ours:
                watch(Event("started", job))
            event = outcome(job, context, device, watch, asked) if ours else Event("busy", job)
    except OSError as error:  # not even a lock can be written
        event = Event("failed", job, why(job, context, device, error))
    watch(event)  # and be ended perhaps: the claim is given back by now


def outcome(job: Job, context: Context, device: str, watch: Watch, asked: Asked) -> Event:
    def told_as(kind: Kind) -> Report:
        def report(values: dict[str, Any]) -> bool:
            watch(Event(kind, job, values))
            return asked()

        return report

    try:
        run = run_on_ranks if shared_by_ranks(job, context) else run_job
        run(job, context, torch.device(device), told_as("epoch"), beat=told_as("step"))
        return Event("done", job)
    except (Stop, NoRoom):
        raise
    except Interrupted:
        return Event("stopped", job)
    except Diverged as error:
        return Event("diverged", job, {"reason": f"diverged: {error}"})
    except (Exception, SystemExit) as error:
        return Event("failed", job, why(job, context, device, error))


def shared_by_ranks(job: Job, context: Context) -> bool:
    """Whether several processes are to train it; what trains nothing, or is done, takes one."""
    return context.gpus_per_job > 1 and not job.needs and not context.store.has_record(job.folder)


def why(job: Job, context: Context, device: str, error: BaseException) -> dict[str, Any]:
    """The reason of a failure in a line, and all of it beside the job."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return {"reason": cannot_write(error), "no_room": True}
    reason = str(error) if isinstance(error, RankLost) else " ".join(f"{type(error).__name__}: {error}".split())
    if out_of_memory(error):
        reason = f"{device} is out of memory: {TO_LOWER} ({reason})"
        free_memory(torch.device(device))
    lost = device_lost(error, torch.device(device))
    if lost:
        reason = f"{device} is lost to this process: {reason}"
    values = {"died": lost or isinstance(error, RankLost), "device_lost": lost}
    try:
        context.store.write_error(job.folder, f"{traceback.format_exc()}\n{reason}\n")
    except OSError as another:
        reason = f"{reason}; and {cannot_write(another)}"
        return {"reason": reason, "no_room": another.errno in NO_ROOM, "device_lost": lost}
    return {"reason": reason, **values}
