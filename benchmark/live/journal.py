"""Keep the journal of a running command: what becomes of its jobs, for those who watch from another process.

It is a file in the results folder. The command removes it at its end; that of a command that was killed goes when
another one begins or ends. One place knows the keys of the file.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from benchmark.base.files import HOST

NAME = re.compile(r"\.running\.(?P<host>[\w.]+)-(?P<process>\d+)\.tmp")
STEP_SECONDS = 3.0
"""Of a job's steps, one is noted in this time: a run of days must not fill the disk."""
ENDED = "ended"
STATES = {"started": "running", "busy": "elsewhere", "retried": "waiting", "stopped": "waiting"}
"""What a job is after an event; after any other that ends it, the event's own name."""
OVER = ("done", "diverged", "failed")


@dataclass(frozen=True)
class JobFacts:
    """What a watcher must know of a job."""

    task: str
    label: str
    seed: int
    folder: str
    epochs: int
    """Its last epoch, counted from 1; 0 where it trains nothing."""


@dataclass
class JobState:
    """How far a job has come."""

    facts: JobFacts
    state: str = "waiting"
    epochs_done: int = 0
    within: float = 0.0
    """The share of the next epoch that is done, or of the images that are predicted."""
    reason: str = ""
    rows: list[dict[str, float]] = field(default_factory=list)
    """Its learning curve, as far as this command trained it."""

    def note(self, line: Mapping[str, Any]) -> None:
        """Take in what the journal says of this job."""
        kind = str(line["kind"])
        if kind == "epoch":
            row = {str(name): float(value) for name, value in line["row"].items()}
            self.rows = [before for before in self.rows if before.get("epoch", -1.0) < row.get("epoch", 0.0)] + [row]
            self.epochs_done, self.within = int(line["epochs_done"]), 0.0
        elif kind == "step":
            self.within = float(line["within"])
        elif kind in STATES or kind in OVER:
            self.state, self.within = STATES.get(kind, kind), 0.0
            self.reason = str(line.get("reason", ""))


@dataclass
class Progress:
    """How far a command has come."""

    jobs: list[JobState]
    done_before: int
    began: float
    """Times are in seconds since 1970."""
    news: float = 0.0
    """When the last line was written."""
    end: float | None = None
    """When it is expected to end."""
    over: bool = False

    def note(self, line: Mapping[str, Any]) -> None:
        """Take in a line of the journal."""
        self.news = float(line["at"])
        if line["kind"] == ENDED:
            self.over, self.end = True, None
            return
        self.end = None if line.get("left") is None else self.news + float(line["left"])
        self.jobs[int(line["job"])].note(line)


class Journal:
    """Writes what happens to the jobs of a command. Where nothing can be written, nobody can watch, and that is all."""

    def __init__(self, root: Path, jobs: Sequence[JobFacts], done_before: int) -> None:
        self.path = root / f".running.{HOST}-{os.getpid()}.tmp"
        self.number = {facts.folder: number for number, facts in enumerate(jobs)}
        self.stepped: dict[int, float] = {}
        self.file: IO[str] | None = None
        with suppress(OSError):
            self.file = self.path.open("w", encoding="utf-8")
        self.write({"jobs": [vars(facts) for facts in jobs], "done_before": done_before, "at": time.time()})

    def note(self, folder: str, kind: str, values: Mapping[str, Any], left: float | None) -> None:
        """Note what happened to the job of a folder, and the seconds left of the whole command."""
        number, now = self.number.get(folder), time.time()
        if number is None:
            return
        if kind == "step" and now - self.stepped.get(number, 0.0) < STEP_SECONDS:
            return
        self.stepped[number] = now
        self.write({"at": now, "job": number, "kind": kind, "left": left, **told(kind, values)})

    def write(self, line: Mapping[str, Any]) -> None:
        try:
            if self.file is not None:
                self.file.write(json.dumps(line) + "\n")
                self.file.flush()
        except OSError:
            self.close()

    def close(self) -> None:
        """Say that the command has ended, and remove the file. Who has it open can still read the end."""
        file, self.file = self.file, None
        if file is None:
            return
        with suppress(OSError), file:
            file.write(json.dumps({"at": time.time(), "kind": ENDED}) + "\n")
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            remove_journals_of_the_dead(self.path.parent)


def remove_journals_of_the_dead(root: Path) -> None:
    """Remove the journals of commands of this machine that were killed meanwhile."""
    for path in root.glob(f".running.{HOST}-*.tmp"):
        named = NAME.fullmatch(path.name)
        if named and not psutil.pid_exists(int(named["process"])):
            path.unlink(missing_ok=True)


def told(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the journal keeps of an event."""
    if kind == "epoch":
        return {"epochs_done": values["epochs_done"], "row": row_of(values)}
    if kind == "step":
        return {"within": values["done"] / values["of"]}
    return {"reason": values["reason"]} if "reason" in values else {}


def row_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the row that an epoch adds to the learning curve."""
    return {name: value for name, value in values.items() if name not in ("epochs_done", "seconds")}


@contextmanager
def journal(root: Path, jobs: Sequence[JobFacts], done_before: int) -> Iterator[Journal]:
    """Yield the journal of a command, which ends with the block."""
    made = Journal(root, jobs, done_before)
    try:
        yield made
    finally:
        made.close()


class Follower:
    """Reads a journal as it grows, also when its command has removed it."""

    def __init__(self, path: Path) -> None:
        self.path, self.progress = path, None
        self.host, self.process = named(path)
        self.file = path.open("rb")
        self.inode = os.fstat(self.file.fileno()).st_ino
        self.rest = b""

    progress: Progress | None

    def read(self) -> Progress | None:
        """Return how far the command has come; None before its first line is whole."""
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            with suppress(ValueError, TypeError, KeyError, IndexError, AttributeError):  # not written by this code
                self.take(json.loads(line))
        if self.progress is not None and self.is_dead():
            self.progress.over, self.progress.end = True, None
        return self.progress

    def take(self, line: Mapping[str, Any]) -> None:
        if self.progress is not None:
            self.progress.note(line)
            return
        jobs = [JobState(read_facts(plain)) for plain in line["jobs"]]
        self.progress = Progress(jobs, int(line["done_before"]), float(line["at"]), float(line["at"]))

    def is_dead(self) -> bool:
        """Tell whether the command was killed. Of another machine that cannot be known."""
        return self.host == HOST and not psutil.pid_exists(self.process)

    def is_replaced(self) -> bool:
        """Tell whether a later command of the same process number writes another file of this name."""
        with suppress(OSError):
            return self.path.stat().st_ino != self.inode
        return False

    def close(self) -> None:
        self.file.close()


def named(path: Path) -> tuple[str, int]:
    """Return the machine and the process that a journal is named after."""
    match = NAME.fullmatch(path.name)
    return (match["host"], int(match["process"])) if match else ("", 0)


def read_facts(plain: Mapping[str, Any]) -> JobFacts:
    task, label, folder = (str(plain[name]) for name in ("task", "label", "folder"))
    return JobFacts(task, label, int(plain["seed"]), folder, int(plain["epochs"]))


class Commands:
    """The commands that write into a results folder: those that run, and those that were seen to end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.followers: dict[str, Follower] = {}

    def read(self) -> list[Progress]:
        """Return how far each command has come; one that has ended is shown until another begins."""
        for path in sorted(self.root.glob(".running.*.tmp")):
            known = self.followers.get(path.name)
            if NAME.fullmatch(path.name) and (known is None or known.is_replaced()):
                with suppress(OSError):
                    self.followers[path.name] = Follower(path)
                    if known is not None:
                        known.close()
        found = {name: progress for name, each in self.followers.items() if (progress := each.read()) is not None}
        if not all(progress.over for progress in found.values()):
            for name in [name for name, progress in found.items() if progress.over]:
                self.followers.pop(name).close()
                del found[name]
        return [*found.values()]

    def close(self) -> None:
        """Close all journals."""
        while self.followers:
            self.followers.popitem()[1].close()
