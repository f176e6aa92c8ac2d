"""Tries of a job in folders of their own. Only who began a try publishes it, so one given up can touch nothing.

A worker of a machine that was taken for dead may go on writing for a while. What it writes lies in the folder of its
own attempt; its successor has another.
"""

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from benchmark.jobs import Job
from benchmark.remote import Mirror, is_result, make_folder, open_place, records_last
from benchmark.runner import Context
from benchmark.store import Store

ATTEMPTS = ".attempts"


def new_attempt() -> str:
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True)
class Attempts:
    """What workers have left beside the results, be these in a folder that all share or at a URL."""

    store: Store
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""

    @cached_property
    def place(self) -> tuple[Any, str]:
        return self.mirror.place if self.mirror else open_place(str(self.store.root.resolve()))

    def publish(self, attempt: str) -> None:
        """Everything it has left, the record last: until that is there, the job is not done."""
        self.surely(lambda: self.move(attempt, self.files(attempt)))
        self.discard(attempt)

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
        with suppress(OSError):
            system.rm(f"{root}/{ATTEMPTS}/{attempt}", recursive=True)
        if not self.mirror:
            with suppress(OSError):
                (self.store.root / ATTEMPTS).rmdir()  # the last one

    def recover(self) -> None:
        """What drivers that died had not published yet; the jobs of a living one are claimed by it.

        Of a job that is done meanwhile, what an attempt that was given up has still written is thrown away.
        """
        for attempt in self.left():
            folders = {Path(name).parent for name in self.files(attempt)}
            if any(self.store.is_claimed(folder) for folder in folders):
                continue
            if not any(self.store.has_record(folder) for folder in folders):
                self.publish(attempt)
            self.discard(attempt)

    def left(self) -> list[str]:
        """Oldest first."""
        system, root = self.place
        system.invalidate_cache()
        try:
            paths = system.ls(f"{root}/{ATTEMPTS}", detail=False)
        except FileNotFoundError:
            return []
        return sorted((PurePosixPath(path).name for path in paths), key=self.last_written)

    def last_written(self, attempt: str) -> float:
        system, root = self.place
        times = [system.modified(f"{root}/{ATTEMPTS}/{attempt}/{name}") for name in self.files(attempt)]
        return max((time.timestamp() for time in times), default=0.0)


@contextmanager
def workplace(job: Job, context: Context, attempt: str) -> Iterator[tuple[Context, Callable[[], None]]]:
    """Where an attempt writes, and how that reaches the others: at once in a shared folder, by upload at a URL."""
    if not context.url:
        yield replace(context, results=context.results / ATTEMPTS / attempt, base=context.results), lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="selbench-") as folder:
        found = Mirror(context.url, Path(folder, "found"))
        found.pull(job.folder, job.snapshot_folder, *(need.folder for need in job.needs), *trunk_of(job))
        made = Mirror(f"{context.url}/{ATTEMPTS}/{attempt}", Path(folder, "made"))
        yield replace(context, results=made.local, base=found.local), made.push


def trunk_of(job: Job) -> list[Path]:
    return [job.trunk.snapshot_folder] if job.trunk else []
