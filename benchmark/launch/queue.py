"""The queue of jobs that wait for each other, and the events that happen to them."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmark.base.errors import NoRoom
from benchmark.jobs.job import Job

Kind = Literal["started", "step", "epoch", "busy", "retried", "stopped", "done", "diverged", "failed"]
ENDS = ("done", "diverged", "failed")
POLL_SECONDS = 0.5
"""How often to look whether another process has finished a job, or a person wants to stop."""


@dataclass(frozen=True)
class Event:
    """What happened to a job, for whoever watches."""

    kind: Kind
    job: Job
    values: dict[str, Any] = field(default_factory=dict)


Watch = Callable[[Event], None]
Asked = Callable[[], bool]
"""Tells whether a person wants the run to stop as soon as its state is saved."""


class Stop(Exception):
    """A watcher raises it to end the run early. What runs is stopped, what is saved stays."""


@dataclass
class Waiting:
    """Jobs that have not begun, in order. One is ready when those it needs have ended."""

    jobs: list[Job]
    watch: Watch
    release: Callable[[Path, int], None] = lambda folder, epoch: None
    """Called with a snapshot that none of the jobs will branch off any more."""
    finished: Callable[[Path], bool] = lambda folder: False
    """Whether a job has been finished, perhaps by another process."""

    def __post_init__(self) -> None:
        self.unfinished = {job.folder for job in self.jobs}
        self.failed: set[Path] = set()
        self.branching = Counter(point for job in self.jobs if (point := job.branching_point) is not None)
        self.to_come = {(job.snapshot_folder, epoch) for job in self.jobs for epoch in job.snapshots}
        self.not_before: dict[Path, float] = {}

    def take(self) -> Job | None:
        """Remove and return the first job that can begin now: what it needs has ended, and its snapshot is there."""
        now = time.monotonic()
        for job in list(self.jobs):
            if self.not_before.get(job.folder, 0.0) <= now and self.is_ready(job):
                self.jobs.remove(job)
                if not self.is_idle_trunk(job):
                    return job
                self.ended(Event("done", job))
        return None

    def is_ready(self, job: Job) -> bool:
        snapshot_is_due = job.branching_point in self.to_come
        return not snapshot_is_due and not any(need.folder in self.unfinished for need in job.needs)

    def is_idle_trunk(self, job: Job) -> bool:
        """Tell whether a trunk has nothing to do: another process may have finished all jobs that branch off it."""
        children = (each for each in self.jobs if each.branching_point and each.branching_point[0] == job.folder)
        return bool(job.until) and all(self.finished(child.folder) for child in children)

    def postpone(self, job: Job, seconds: float = 0.0) -> None:
        """Put a job back to the front, to be begun after so many seconds."""
        self.jobs.insert(0, job)
        self.not_before[job.folder] = time.monotonic() + seconds

    def mark_snapshots(self, job: Job, epoch: int) -> None:
        """Mark the snapshots of a trunk up to `epoch` as available. One that is not there by now never will be."""
        self.to_come -= {(job.snapshot_folder, passed) for passed in job.snapshots if passed <= epoch}

    def ended(self, event: Event) -> None:
        """Note that a job has ended. If it failed, jobs that need it fail too; those that branch off it can begin."""
        self.mark_snapshots(event.job, event.job.last_epoch)
        self.unfinished.discard(event.job.folder)
        self.watch(event)
        point = event.job.branching_point
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

    def handle(self, event: Event) -> None:
        """Do what an event asks for, and pass it on to the watcher."""
        if event.kind in ENDS:
            self.ended(event)
            if event.values.get("no_room"):
                raise NoRoom(event.values["reason"])
            return
        if event.kind in ("busy", "stopped"):
            self.postpone(event.job, POLL_SECONDS)
        if event.kind == "epoch":
            self.mark_snapshots(event.job, event.values["epochs_done"])
        self.watch(event)
