"""Worker processes that are handed one job at a time."""

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

from benchmark.ahead import watch_parent
from benchmark.interrupts import ignored_interrupts
from benchmark.jobs import Job
from benchmark.launch import ENDS, POLL_SECONDS, Asked, Event, Waiting, run_watched
from benchmark.runner import Context
from benchmark.store import LOG, Store

SPAWN = multiprocessing.get_context("spawn")
"""A forked copy of a process that has computed on several threads hangs."""
IDLE = ("busy", "stopped", *ENDS)
"""Events after which a worker has no job."""
TAIL_LINES = 40
SECONDS_TO_END = 10.0


@dataclass
class Mourning:
    """What becomes of jobs whose process died."""

    context: Context
    waiting: Waiting
    retries: int = 0
    deaths: Counter[Path] = field(default_factory=Counter)

    def mourn(self, job: Job, reason: str, *, recorded: bool = False) -> None:
        """Try it again, or record what is known of the death, unless it has said so itself."""
        self.deaths[job.folder] += 1
        if self.deaths[job.folder] <= self.retries:
            self.waiting.postpone(job)
            self.waiting.watch(Event("retried", job, {"reason": reason}))
            return
        if not recorded:
            self.record(job, reason)
        self.waiting.ended(Event("failed", job, {"reason": reason}))

    def record(self, job: Job, reason: str) -> None:
        store = self.context.store
        with store.claim(job.folder) as ours:
            if ours:
                store.write_error(job.folder, f"{log_tail(store, job.folder)}\n{reason}\n")


@dataclass
class Worker:
    process: SpawnProcess
    connection: "Connection[Any, Any]"
    device: str
    job: Job | None = None
    told: bool = False
    """Whether it has been asked to stop."""


@dataclass
class Pool:
    """One that dies is replaced, and its job is tried again, as often as `retries` says."""

    context: Context
    waiting: Waiting
    asked: Asked
    retries: int = 0
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mourning = Mourning(self.context, self.waiting, self.retries)

    def run(self, devices: Sequence[str]) -> None:
        try:
            self.workers = [self.start(device) for device in devices]
            while self.waiting.jobs or self.busy():
                self.turn()
        finally:
            self.stop()

    def turn(self) -> None:
        """Hand out what can be begun, then listen for a while."""
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
        with ignored_interrupts():
            process.start()
        theirs.close()
        return Worker(process, ours, device)

    def hand_out(self) -> None:
        """Give every idle worker a job, as far as some are ready."""
        for index, worker in enumerate(self.workers):
            job = None if worker.job else self.waiting.take()
            if job is not None:
                if not worker.process.is_alive():
                    self.workers[index] = worker = self.replace(worker)
                worker.job = job
                with contextlib.suppress(OSError):  # one that has died since is noticed when it is attended to
                    worker.connection.send(job)

    def ask_to_stop(self) -> None:
        """A message to a worker that has a job can mean nothing else."""
        if not self.busy():
            raise KeyboardInterrupt
        for worker in self.busy():
            if not worker.told:
                worker.told = True
                with contextlib.suppress(OSError):
                    worker.connection.send(None)

    def attend(self, worker: Worker) -> Worker:
        """Pass on what a worker says; one that died is replaced."""
        try:
            event: Event | None = worker.connection.recv() if worker.connection.poll() else None
        except (EOFError, OSError):
            event = None
        if event is None:
            return self.mourned(worker)
        if event.kind in IDLE:
            worker.job = None
        if event.values.get("died"):
            self.mourning.mourn(event.job, event.values["reason"], recorded=event.values.get("device_lost", False))
        else:
            self.waiting.hear(event)
        return self.replace(worker) if event.values.get("device_lost") and self.waiting.jobs else worker

    def replace(self, dead: Worker) -> Worker:
        dead.process.join()
        dead.connection.close()
        return self.start(dead.device)

    def mourned(self, dead: Worker) -> Worker:
        """A successor for a worker that died, if there is work for one."""
        job, dead.job = dead.job, None
        dead.process.join()
        if job is not None:
            self.mourning.mourn(job, death_of(dead.process.exitcode))
        return self.replace(dead) if self.waiting.jobs else dead

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join(SECONDS_TO_END)
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


def death_of(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"its worker process died (exit code {exit_code})"
    number = -exit_code
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    lack = "; perhaps for lack of memory: try fewer --workers" if number == signal.SIGKILL else ""
    return f"its worker process died ({name}{lack})"


def log_tail(store: Store, folder: Path) -> str:
    path = store.root / folder / LOG
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return "\n".join(lines[-TAIL_LINES:])


def work(connection: "Connection[Any, Any]", context: Context, device: str) -> None:
    """The life of a worker process. It ends with its parent, however that ends; what is saved stays."""
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
    """From here on all that this process prints, be it from C or at its death, goes to a file."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        with path.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)


@contextlib.contextmanager
def printed_to(path: Path) -> Iterator[None]:
    """The same for a while, in a process that is not ours alone."""
    before = [os.dup(number) for number in (1, 2)]
    print_to(path)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, old in zip((1, 2), before, strict=True):
            os.dup2(old, number)
            os.close(old)
