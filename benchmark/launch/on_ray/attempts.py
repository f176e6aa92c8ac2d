"""Attempts at a job, each in a folder of its own. Only drivers publish them: one that was given up changes nothing.

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

from benchmark.jobs.job import Job
from benchmark.store.mirror import Mirror, is_result, make_folder, open_remote, records_last
from benchmark.store.store import Store
from benchmark.train.context import Context

ATTEMPTS, OPEN = ".attempts", ".open"
WORKPLACE = "selbench-"


@dataclass(frozen=True)
class Attempts:
    """The folders of attempts, beside the results: in a folder that all workers share, or at a URL."""

    store: Store
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""

    @cached_property
    def remote(self) -> tuple[Any, str]:
        return self.mirror.remote if self.mirror else open_remote(str(self.store.root.resolve()))

    def begin(self, job: Job) -> str:
        """Open a new attempt and return its name. Until it is published, a mark says which job it belongs to."""
        system, root = self.remote
        attempt = uuid.uuid4().hex[:12]
        mark = f"{root}/{ATTEMPTS}/{attempt}{OPEN}"
        self.with_retries(lambda: make_folder(system, mark))
        self.with_retries(lambda: system.pipe_file(mark, job.folder.as_posix().encode()))
        return attempt

    def publish(self, attempt: str) -> None:
        """Move all files of an attempt to the results, the record last: until that is there, the job is not done."""
        self.with_retries(lambda: self.move(attempt, self.files(attempt)))
        self.with_retries(lambda: self.discard(attempt))

    def publish_snapshots(self, attempt: str, job: Job) -> None:
        """Move its snapshots to the results: others need them before the job has ended."""
        folder = job.snapshot_folder.as_posix()
        self.with_retries(lambda: self.move(attempt, [f for f in self.files(attempt, folder) if "/snapshot-" in f]))

    def with_retries(self, action: Callable[[], None]) -> None:
        """Do something; at a URL, try again where it fails."""
        self.mirror.with_retries(action) if self.mirror else action()

    def files(self, attempt: str, folder: str = "") -> list[str]:
        """Return the results that an attempt has written so far, in one folder or in all."""
        system, root = self.remote
        start = f"{root}/{ATTEMPTS}/{attempt}"
        system.invalidate_cache()
        names = (PurePosixPath(path).relative_to(start) for path in system.find(f"{start}/{folder}".rstrip("/")))
        return [str(name) for name in names if is_result(str(name))]

    def move(self, attempt: str, names: list[str]) -> None:
        system, root = self.remote
        for name in records_last(names):
            make_folder(system, f"{root}/{name}")
            with suppress(FileNotFoundError):  # whoever writes there may still be at work
                system.mv(f"{root}/{ATTEMPTS}/{attempt}/{name}", f"{root}/{name}")
        if self.mirror and names:
            self.mirror.pull(*{Path(name).parent for name in names})

    def discard(self, attempt: str) -> None:
        system, root = self.remote
        for name in (f"{attempt}{OPEN}", attempt):
            with suppress(FileNotFoundError):
                system.rm(f"{root}/{ATTEMPTS}/{name}", recursive=True)
        if not self.mirror:
            with suppress(OSError):
                (self.store.root / ATTEMPTS).rmdir()  # the last one

    def recover(self) -> None:
        """Publish what drivers that died had not published yet. Jobs that a living driver has claimed are left alone.

        An attempt without its mark was given up. It is thrown away, whatever its worker has written since.
        """
        names = self.left()
        for attempt in (name.removesuffix(OPEN) for name in names if name.endswith(OPEN)):
            # The mark is read again under the claim: its driver may have given the attempt up meanwhile.
            with suppress(FileNotFoundError), self.store.claim(self.owner(attempt)) as ours:
                if ours and not self.store.has_record(self.owner(attempt)):
                    self.publish(attempt)
                elif ours:
                    self.discard(attempt)
        for attempt in names:
            if not attempt.endswith(OPEN) and f"{attempt}{OPEN}" not in names:
                self.discard(attempt)

    def owner(self, attempt: str) -> Path:
        """Return the folder of the job of an open attempt."""
        system, root = self.remote
        return Path(system.cat_file(f"{root}/{ATTEMPTS}/{attempt}{OPEN}").decode())

    def left(self) -> list[str]:
        """Return the names of all attempts and marks that are there."""
        system, root = self.remote
        system.invalidate_cache()
        try:
            return [PurePosixPath(path).name for path in system.ls(f"{root}/{ATTEMPTS}", detail=False)]
        except FileNotFoundError:
            return []


@contextmanager
def workplace(job: Job, context: Context, attempt: str) -> Iterator[tuple[Context, Callable[[], None]]]:
    """Yield a context that writes to the attempt's own place, and the function that uploads it if that is at a URL."""
    if not context.url:
        yield replace(context, results=context.results / ATTEMPTS / attempt, base=context.results), lambda: None
        return
    sweep_workplaces()
    with tempfile.TemporaryDirectory(prefix=f"{WORKPLACE}{os.getpid()}-") as folder:
        found = Mirror(context.url, Path(folder, "found"))
        trunk = [job.trunk.snapshot_folder] if job.trunk else []
        found.pull(job.folder, job.snapshot_folder, *(need.folder for need in job.all_needs), *trunk)
        made = Mirror(f"{context.url}/{ATTEMPTS}/{attempt}", Path(folder, "made"))
        yield replace(context, results=made.local, base=found.local), made.push


def sweep_workplaces() -> None:
    """Remove the temporary folders of workers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{WORKPLACE}*"):
        process = path.name.removeprefix(WORKPLACE).partition("-")[0]
        if process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)
