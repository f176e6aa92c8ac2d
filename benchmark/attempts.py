"""Tries of a job in folders of their own. Only who began a try publishes it, so one given up can touch nothing.

A worker of a machine that was taken for dead may go on writing for a while. What it writes lies in the folder of its
own attempt; its successor has another.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.jobs import Job
from benchmark.store import RECORD, Store

ATTEMPTS = ".attempts"


@dataclass(frozen=True)
class Attempt:
    store: Store
    job: Job
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def root(self) -> Path:
        return self.store.root / ATTEMPTS / self.id

    def publish(self) -> None:
        """Everything it has left, the record last: until that is there, the job is not done."""
        publish(self.root, self.store.root)

    def publish_snapshots(self) -> None:
        """What others branch off is needed before the job has ended."""
        for path in (self.root / self.job.snapshot_folder).glob("snapshot-*.pt"):
            move(path, self.root, self.store.root)


def publish(attempt: Path, root: Path) -> None:
    for path in sorted(finished_files(attempt), key=lambda path: path.name == RECORD):
        move(path, attempt, root)
    shutil.rmtree(attempt, ignore_errors=True)
    with suppress(OSError):
        attempt.parent.rmdir()  # the last one


def finished_files(attempt: Path) -> Iterator[Path]:
    return (path for path in attempt.rglob("*") if path.is_file() and not path.name.startswith("."))


def move(path: Path, attempt: Path, root: Path) -> None:
    target = root / path.relative_to(attempt)
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):  # whoever writes there may still be at work
        path.replace(target)


def recover(store: Store) -> None:
    """What drivers that died had not published yet; the jobs of a living one are claimed by it.

    Of a job that is done meanwhile, what an attempt that was given up has still written is thrown away.
    """
    for attempt in sorted((store.root / ATTEMPTS).glob("*"), key=lambda path: path.stat().st_mtime):
        folders = {path.parent.relative_to(attempt) for path in finished_files(attempt)}
        if any(store.is_claimed(folder) for folder in folders):
            continue
        for folder in folders:
            if store.has_record(folder):
                shutil.rmtree(attempt / folder)
            publish(attempt, store.root)
