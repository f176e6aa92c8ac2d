"""Run jobs in worker processes, one job at a time in each."""

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from benchmark.base.children import without_script
from benchmark.base.prefetch import watch_parent
from benchmark.base.signals import ignored_interrupts
from benchmark.jobs.job import Job
from benchmark.launch.queue import ENDS, POLL_SECONDS, Asked, Event, Waiting
from benchmark.launch.supervise import run_watched
from benchmark.store.store import LOG, Store
from benchmark.train.context import Context

SPAWN = multiprocessing.get_context("spawn")
"""A forked copy of a process that has computed on several threads hangs."""
IDLE = ("busy", "stopped", *ENDS)
"""Events after which a worker has no job."""
TAIL_LINES = 40
SECONDS_TO_END = 10.0


@dataclass
class RetryPolicy:
    """Decides what becomes of jobs whose process died. All other events go to the queue."""

    context: Context
    waiting: Waiting
    retries: int = 0
    deaths: Counter[Path] = field(default_factory=Counter)

    def handle(self, event: Event) -> None:
        """Pass an event on to the queue, unless it tells of a death."""
        if event.values.get("died"):
            self.on_death(event.job, event.values["reason"], recorded=event.values.get("device_lost", False))
        else:
            self.waiting.handle(event)

    def on_death(self, job: Job, reason: str, *, recorded: bool = False) -> None:
        """Try the job again, or let it fail. Record what is known of the death, unless the job did so itself."""
        self.deaths[job.folder] += 1
        if self.deaths[job.folder] <= self.retries:
            self.waiting.postpone(job)
            self.waiting.watch(Event("retried", job, {"reason": reason}))
            return
        store = self.context.store
        if not recorded:
            with store.claim(job.folder) as ours:
                if ours:
                    store.write_error(job.folder, f"{log_tail(store, job.folder)}\n{reason}\n")
        self.waiting.ended(Event("failed", job, {"reason": reason}))


@dataclass
class Worker:
    process: SpawnProcess
    connection: "Connection[Any, Any]"
    device: str
    job: Job | None = None
    asked_to_stop: bool = False


@dataclass
class Pool:
    """The workers. One that dies is replaced, and its job is tried again as often as `retries` says."""

    context: Context
    waiting: Waiting
    asked: Asked
    retries: int = 0
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.retry_policy = RetryPolicy(self.context, self.waiting, self.retries)

    def run(self, devices: Sequence[str]) -> None:
        try:
            self.workers = [self.start(device) for device in devices]
            while self.waiting.jobs or self.busy():
                self.turn()
        finally:
            self.stop()

    def turn(self) -> None:
        """Hand out jobs that can begin, then wait a moment for events."""
        if self.asked():
            self.ask_to_stop()
        else:
            self.hand_out()
        busy = self.busy()
        ready = wait([worker.connection for worker in busy], POLL_SECONDS)
        for index, worker in enumerate(self.workers):
            # A process that a worker has started may hold its connection open beyond its death.
            if worker in busy and (worker.connection in ready or not worker.process.is_alive()):
                self.workers[index] = self.attend(worker)

    def busy(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.job]

    def start(self, device: str) -> Worker:
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=work, args=(theirs, self.context, device), daemon=True)
        with ignored_interrupts(), without_script():
            process.start()
        theirs.close()
        return Worker(process, ours, device)

    def hand_out(self) -> None:
        """Give a ready job to each idle worker, as long as there are jobs."""
        for index, worker in enumerate(self.workers):
            job = None if worker.job else self.waiting.take()
            if job is not None:
                if not worker.process.is_alive():
                    self.workers[index] = worker = self.replace(worker)
                worker.job = job
                with contextlib.suppress(OSError):  # one that has died since is noticed when it is attended to
                    worker.connection.send(job)

    def ask_to_stop(self) -> None:
        """Ask the busy workers to stop. A message to one that has a job can mean nothing else."""
        if not self.busy():
            raise KeyboardInterrupt
        for worker in self.busy():
            if not worker.asked_to_stop:
                worker.asked_to_stop = True
                with contextlib.suppress(OSError):
                    worker.connection.send(None)

    def attend(self, worker: Worker) -> Worker:
        """Handle what a worker sent, or its death. Return the worker, or a new one if there is work for one."""
        event: Event | None = None
        with contextlib.suppress(EOFError, OSError):
            event = worker.connection.recv() if worker.connection.poll() else None
        job = worker.job
        if event is None or event.kind in IDLE:
            worker.job = None
        if event is not None:
            self.retry_policy.handle(event)
        elif job is not None:
            worker.process.join()
            self.retry_policy.on_death(job, death_of(worker.process.exitcode))
        is_lost = event is None or event.values.get("device_lost")
        return self.replace(worker) if is_lost and self.waiting.jobs else worker

    def replace(self, dead: Worker) -> Worker:
        dead.process.join()
        dead.connection.close()
        return self.start(dead.device)

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join(SECONDS_TO_END)
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


def death_of(exit_code: int | None) -> str:
    """Return in words how a worker process ended."""
    if exit_code is None or exit_code >= 0:
        return f"its worker process died (exit code {exit_code})"
    number = -exit_code
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    lack = "; perhaps for lack of memory: try fewer --workers" if number == signal.SIGKILL else ""
    return f"its worker process died ({name}{lack})"


def log_tail(store: Store, folder: Path) -> str:
    """Return the last lines that a job has printed."""
    path = store.root / folder / LOG
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return "\n".join(lines[-TAIL_LINES:])


def work(connection: "Connection[Any, Any]", context: Context, device: str) -> None:
    """Run the jobs that the parent sends: all that a worker process does. It ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a thread that starts workers cannot let them inherit it
    watch_parent()
    faulthandler.enable()

    def tell(event: Event) -> None:
        if event.kind == "started":
            print_to(context.store.root / event.job.folder / LOG)
        elif event.kind in IDLE:
            print_to(Path(os.devnull))
        try:
            connection.send(event)
        except OSError:
            os._exit(1)
        if event.values.get("device_lost"):  # no further job can succeed here, and tidying up may hang
            os._exit(1)

    with contextlib.suppress(EOFError):
        while True:
            job = connection.recv()
            if job is not None:  # else it was asked to stop a job that had just ended
                run_watched(job, context, device, tell, connection.poll)


def print_to(path: Path) -> None:
    """Send all that this process prints from now on to a file, with what C code prints and its last words."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        with path.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)


@contextlib.contextmanager
def printed_to(path: Path) -> Iterator[None]:
    """Send what this process prints to a file while the block lasts: other jobs use the process, too."""
    before = [os.dup(number) for number in (1, 2)]
    print_to(path)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, old in zip((1, 2), before, strict=True):
            os.dup2(old, number)
            os.close(old)
