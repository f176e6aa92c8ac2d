"""Many jobs: one after the other in this process, or spread over worker processes. The store is the truth."""

import contextlib
import multiprocessing
import os
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Literal

import torch

from benchmark.ahead import ignored_interrupts
from benchmark.jobs import Job
from benchmark.runner import Context, run_job
from benchmark.trainer import Diverged

SPAWN = multiprocessing.get_context("spawn")
"""A forked copy of a process that has computed on several threads hangs."""


@dataclass(frozen=True)
class Event:
    """What happened to a job, for whoever watches."""

    kind: Literal["started", "epoch", "done", "diverged", "failed"]
    job: Job
    values: dict[str, Any] = field(default_factory=dict)


Watch = Callable[[Event], None]


class Stop(Exception):
    """Raised by a watcher to end the run early; what runs is stopped, what is saved stays."""


@dataclass
class Waiting:
    """Jobs that are not begun, in order; one is ready when those it needs have ended."""

    jobs: list[Job]
    watch: Watch
    release: Callable[[Path, int], None] = lambda folder, epoch: None
    """Called with a snapshot that none of the jobs will branch off any more."""

    def __post_init__(self) -> None:
        self.unfinished = {job.folder for job in self.jobs}
        self.failed: set[Path] = set()
        self.branching = Counter(point for job in self.jobs if (point := branching_point(job)) is not None)
        self.to_come = {(job.snapshot_folder, epoch) for job in self.jobs for epoch in job.snapshots}

    def take(self) -> Job | None:
        """The first job that can begin now: what it needs has ended, and its trunk is where it branches off."""
        for index, job in enumerate(self.jobs):
            if branching_point(job) not in self.to_come and not any(n.folder in self.unfinished for n in job.needs):
                return self.jobs.pop(index)
        return None

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
            return
        if event.kind == "epoch":
            self.grown(event.job, event.values["epochs_done"])
        self.watch(event)


ENDS = ("done", "diverged", "failed")


def branching_point(job: Job) -> tuple[Path, int] | None:
    """The snapshot that a job begins with."""
    return (job.trunk.snapshot_folder, job.warmup_epochs) if job.branches and job.trunk else None


def launch(jobs: Sequence[Job], context: Context, devices: Sequence[str], watch: Watch) -> None:
    """Run every job, one worker per entry of `devices`. A job that fails costs only those that need it."""
    waiting = Waiting(list(jobs), watch)
    if not context.keep_trunks:
        waiting.release = context.store.remove_snapshot
    if len(devices) == 1 or len(jobs) <= 1:
        while (job := waiting.take()) is not None:
            run_watched(job, context, devices[0], waiting.hear)
    else:
        Pool(context, waiting).run(devices[: len(jobs)])


def run_watched(job: Job, context: Context, device: str, watch: Watch) -> None:
    """Run a job and tell what happened; its failure is stored beside it and told like the rest."""
    watch(Event("started", job))
    try:
        run_job(job, context, torch.device(device), lambda values: watch(Event("epoch", job, values)))
    except (Stop, KeyboardInterrupt):
        raise
    except Diverged as error:
        watch(Event("diverged", job, {"reason": f"diverged: {error}"}))
        return
    except Exception as error:
        context.store.write_error(job.folder, traceback.format_exc())
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        watch(Event("failed", job, {"reason": reason}))
        return
    watch(Event("done", job))


@dataclass
class Worker:
    process: SpawnProcess
    connection: "Connection[Any, Any]"
    device: str
    job: Job | None = None


@dataclass
class Pool:
    """Worker processes that are handed one job at a time. One that dies fails its job and is replaced."""

    context: Context
    waiting: Waiting
    workers: list[Worker] = field(default_factory=list)

    def run(self, devices: Sequence[str]) -> None:
        try:
            self.workers = [self.start(device) for device in devices]
            self.hand_out()
            while any(worker.job for worker in self.workers):
                ready = wait([worker.connection for worker in self.workers if worker.job])
                for index, worker in enumerate(self.workers):
                    if worker.connection in ready:
                        self.workers[index] = self.attend(worker)
                self.hand_out()
        finally:
            self.stop()

    def start(self, device: str) -> Worker:
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=work, args=(theirs, self.context, device), daemon=True)
        with ignored_interrupts():
            process.start()
        theirs.close()
        return Worker(process, ours, device)

    def hand_out(self) -> None:
        """Give every idle worker a job, as far as some are ready."""
        for worker in self.workers:
            if worker.job is None:
                worker.job = self.waiting.take()
                if worker.job is not None:
                    with contextlib.suppress(OSError):  # a worker that is dead is noticed when it is attended to
                        worker.connection.send(worker.job)

    def attend(self, worker: Worker) -> Worker:
        """Pass on what a worker says; one that died is replaced."""
        try:
            event: Event = worker.connection.recv()
        except (EOFError, OSError):
            return self.replace(worker)
        if event.kind in ENDS:
            worker.job = None
        self.waiting.hear(event)
        return worker

    def replace(self, dead: Worker) -> Worker:
        dead.process.join()
        dead.connection.close()
        reason = f"its worker process died (exit code {dead.process.exitcode})"
        job, dead.job = dead.job, None
        if job is not None:
            self.waiting.ended(Event("failed", job, {"reason": reason}))
        return self.start(dead.device) if self.waiting.jobs else dead

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()
            worker.connection.close()


def work(connection: "Connection[Any, Any]", context: Context, device: str) -> None:
    """The life of a worker process."""

    def tell(event: Event) -> None:
        try:
            connection.send(event)
        except OSError:
            os._exit(1)  # the parent is gone; what is saved stays

    with contextlib.suppress(EOFError):
        while True:
            run_watched(connection.recv(), context, device, tell)
