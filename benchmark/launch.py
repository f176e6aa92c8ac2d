"""Many jobs: one after the other in this process, or spread over worker processes. The store is the truth."""

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Literal

import torch

from benchmark.jobs import Job
from benchmark.runner import Context, run_job

SPAWN = multiprocessing.get_context("spawn")
"""A forked copy of a process that has computed on several threads hangs."""


@dataclass(frozen=True)
class Event:
    """What happened to a job, for whoever watches."""

    kind: Literal["started", "epoch", "done", "failed"]
    job: Job
    values: dict[str, Any] = field(default_factory=dict)


Watch = Callable[[Event], None]


class Stop(Exception):
    """Raised by a watcher to end the run early; what runs is stopped, what is saved stays."""


def launch(jobs: Sequence[Job], context: Context, devices: Sequence[str], watch: Watch) -> None:
    """Run every job, one worker per entry of `devices`. A job that fails never stops the others."""
    if len(devices) == 1 or len(jobs) <= 1:
        for job in jobs:
            run_watched(job, context, devices[0], watch)
    else:
        Pool(context, watch).run(list(jobs), devices[: len(jobs)])


def run_watched(job: Job, context: Context, device: str, watch: Watch) -> None:
    """Run a job and tell what happened; its failure is stored beside it and told like the rest."""
    watch(Event("started", job))
    try:
        run_job(job, context, torch.device(device), lambda values: watch(Event("epoch", job, values)))
    except (Stop, KeyboardInterrupt):
        raise
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
    watch: Watch
    workers: list[Worker] = field(default_factory=list)

    def run(self, jobs: list[Job], devices: Sequence[str]) -> None:
        waiting = list(reversed(jobs))
        try:
            self.workers = [self.start(device) for device in devices]
            for worker in self.workers:
                self.hand_out(worker, waiting)
            while any(worker.job for worker in self.workers):
                ready = wait([worker.connection for worker in self.workers if worker.job])
                for index, worker in enumerate(self.workers):
                    if worker.connection in ready:
                        self.workers[index] = self.attend(worker, waiting)
        finally:
            self.stop()

    def start(self, device: str) -> Worker:
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=work, args=(theirs, self.context, device), daemon=True)
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: Ctrl-C is the parent's to handle
        process.start()
        signal.signal(signal.SIGINT, handler)
        theirs.close()
        return Worker(process, ours, device)

    def hand_out(self, worker: Worker, waiting: list[Job]) -> None:
        worker.job = waiting.pop() if waiting else None
        with contextlib.suppress(OSError):  # a worker that is dead is noticed when it is attended to
            worker.connection.send(worker.job)

    def attend(self, worker: Worker, waiting: list[Job]) -> Worker:
        """Pass on what a worker says; give it, or the one that replaces it, the next job."""
        try:
            event: Event = worker.connection.recv()
        except (EOFError, OSError):
            return self.replace(worker, waiting)
        self.watch(event)
        if event.kind in ("done", "failed"):
            self.hand_out(worker, waiting)
        return worker

    def replace(self, dead: Worker, waiting: list[Job]) -> Worker:
        dead.process.join()
        dead.connection.close()
        reason = f"its worker process died (exit code {dead.process.exitcode})"
        job, dead.job = dead.job, None
        if job is not None:
            self.watch(Event("failed", job, {"reason": reason}))
        if not waiting:
            return dead
        worker = self.start(dead.device)
        self.hand_out(worker, waiting)
        return worker

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
        while (job := connection.recv()) is not None:
            run_watched(job, context, device, tell)
