"""Tries of a job in folders of their own. Only drivers publish them, while they are open: one given up touches nothing.

A worker of a machine that was taken for dead may go on writing for a while. What it writes lies in the folder of its
own attempt; its successor has another.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

from benchmark.jobs import Job
from benchmark.remote import Mirror, is_result, make_folder, open_place, records_last
from benchmark.runner import Context
from benchmark.store import Store

ATTEMPTS, OPEN = ".attempts", ".open"
WORKPLACE = "selbench-"


@dataclass(frozen=True)
class Attempts:
    """What workers have left beside the results, be these in a folder that all share or at a URL."""

    store: Store
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""

    @cached_property
    def place(self) -> tuple[Any, str]:
        return self.mirror.place if self.mirror else open_place(str(self.store.root.resolve()))

    def begin(self, job: Job) -> str:
        """A name for a new one. Until it is published it is open, and says whose it is."""
        attempt = uuid.uuid4().hex[:12]
        self.surely(lambda: self.open(attempt, job.folder))
        return attempt

    def open(self, attempt: str, folder: Path) -> None:
        system, root = self.place
        make_folder(system, f"{root}/{ATTEMPTS}/{attempt}{OPEN}")
        system.pipe_file(f"{root}/{ATTEMPTS}/{attempt}{OPEN}", folder.as_posix().encode())

    def publish(self, attempt: str) -> None:
        """Everything it has left, the record last: until that is there, the job is not done."""
        self.surely(lambda: self.move(attempt, self.files(attempt)))
        self.surely(lambda: self.discard(attempt))

    def publish_snapshots(self, attempt: str, job: Job) -> None:
        """What others branch off is needed before the job has ended."""
        folder = job.snapshot_folder.as_posix()
        self.surely(lambda: self.move(attempt, [each for each in self.files(attempt, folder) if "/snapshot-" in each]))

    def surely(self, action: Callable[[], None]) -> None:
        """Networks fail for a moment now and then."""
        self.mirror.try_hard(action) if self.mirror else action()

    def files(self, attempt: str, folder: str = "") -> list[str]:
        system, root = self.place
        start = f"{root}/{ATTEMPTS}/{attempt}"
        system.invalidate_cache()
        names = (PurePosixPath(path).relative_to(start) for path in system.find(f"{start}/{folder}".rstrip("/")))
        return [str(name) for name in names if is_result(str(name))]

    def move(self, attempt: str, names: list[str]) -> None:
        system, root = self.place
        for name in records_last(names):
            make_folder(system, f"{root}/{name}")
            with suppress(FileNotFoundError):  # whoever writes there may still be at work
                system.mv(f"{root}/{ATTEMPTS}/{attempt}/{name}", f"{root}/{name}")
        if self.mirror and names:
            self.mirror.pull(*{Path(name).parent for name in names})

    def discard(self, attempt: str) -> None:
        system, root = self.place
        for name in (f"{attempt}{OPEN}", attempt):
            with suppress(FileNotFoundError):
                system.rm(f"{root}/{ATTEMPTS}/{name}", recursive=True)
        if not self.mirror:
            with suppress(OSError):
                (self.store.root / ATTEMPTS).rmdir()  # the last one

    def recover(self) -> None:
        """What drivers that died had not published yet; the jobs of a living one are claimed by it.

        What is not open was given up: it is thrown away, whatever its worker has written since.
        """
        names = self.left()
        for attempt in (name.removesuffix(OPEN) for name in names if name.endswith(OPEN)):
            with suppress(FileNotFoundError), self.store.claim(self.owner(attempt)) as ours:
                if ours and not self.store.has_record(self.owner(attempt)):
                    self.publish(attempt)
                elif ours:
                    self.discard(attempt)
        for attempt in names:
            if not attempt.endswith(OPEN) and f"{attempt}{OPEN}" not in names:
                self.discard(attempt)

    def owner(self, attempt: str) -> Path:
        system, root = self.place
        return Path(system.cat_file(f"{root}/{ATTEMPTS}/{attempt}{OPEN}").decode())

    def left(self) -> list[str]:
        system, root = self.place
        system.invalidate_cache()
        try:
            return [PurePosixPath(path).name for path in system.ls(f"{root}/{ATTEMPTS}", detail=False)]
        except FileNotFoundError:
            return []


@contextmanager
def workplace(job: Job, context: Context, attempt: str) -> Iterator[tuple[Context, Callable[[], None]]]:
    """Where an attempt writes, and how that reaches the others: at once in a shared folder, by upload at a URL."""
    if not context.url:
        yield replace(context, results=context.results / ATTEMPTS / attempt, base=context.results), lambda: None
        return
    sweep_workplaces()
    with tempfile.TemporaryDirectory(prefix=f"{WORKPLACE}{os.getpid()}-") as folder:
        found = Mirror(context.url, Path(folder, "found"))
        trunk = [job.trunk.snapshot_folder] if job.trunk else []
        found.pull(job.folder, job.snapshot_folder, *(need.folder for need in job.needs), *trunk)
        made = Mirror(f"{context.url}/{ATTEMPTS}/{attempt}", Path(folder, "made"))
        yield replace(context, results=made.local, base=found.local), made.push


def sweep_workplaces() -> None:
    """Those of workers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{WORKPLACE}*"):
        process = path.name.removeprefix(WORKPLACE).partition("-")[0]
        if process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)
