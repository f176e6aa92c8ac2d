"""A job: one method trained on one task with one seed. Its id is the hash of all that can change its result."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from benchmark.config import TaskConfig
from benchmark.interface import Contestant
from benchmark.recipe import Differences, recipe_of
from benchmark.sources import Facts
from benchmark.store import PREDICTION, TRUNK, folder_of

PREDICTION_HELD_OUT = "prediction-held-out.npz"


class Methods(Protocol):
    """What the core asks of the collection of methods; it never imports one."""

    def names(self) -> list[str]: ...
    def get(self, name: str) -> type[Contestant]: ...
    def source_hash(self, name: str) -> str | None: ...
    def bytes_hash(self, name: str) -> str | None: ...
    def code_hash(self, name: str) -> str: ...


@dataclass(frozen=True)
class Job:
    task: TaskConfig
    method: str
    """The method's file name."""
    config: dict[str, Any]
    """The method's resolved settings as plain values: a job travels to processes that have not loaded its method."""
    data_sha256: str
    source_sha256: str | None
    """Hash of what a plugin does, whatever its comments and layout; None for the methods of the suite."""
    seed: int
    warmup_epochs: int = 0
    """Epochs that the method's declared warm-up trains in its place; follows from `config`."""
    max_steps: int = 0
    """Train and predict only so many batches of each phase, to try a configuration; 0 = all."""
    needs: "tuple[Job, ...]" = ()
    """Jobs that must be done before: what a derived method combines, or the training that a method takes over."""
    takes_over: bool = False
    """Whether it begins with the final network of what it needs, and trains nothing."""
    held_out: float = 0.0
    """In a trial of `tune`, the share of the training images that takes the place of the test images, drawn by the
    seed. Nothing else sees these; nobody sees the test images."""
    data_seed: int | None = None
    """Splits the data where the job's own seed does not: members of an ensemble see the ensemble's images."""
    bytes_sha256: str | None = None
    """Hash of a plugin's file, which older results go by (see `former.py`); no part of its identity."""
    label: str = ""
    """What people call it; no part of its identity."""
    code: str = ""
    """Hash of the code that computes it; no part of its identity, so that a changed comment costs no training."""
    trunk: "Job | None" = None
    """The training whose first `warmup_epochs` epochs are this one's warm-up, to the bit."""
    branches: bool = False
    """Whether it begins with the snapshot that its trunk leaves after the warm-up."""
    snapshots: tuple[int, ...] = ()
    """After so many epochs it leaves its state for others to branch off."""
    until: int = 0
    """Trains only so many epochs and leaves nothing but snapshots; 0 = all."""

    def identity(self) -> dict[str, Any]:
        own = {"method": self.method, "config": self.config, "data_sha256": self.data_sha256}
        needs = sorted({need.id for need in self.needs})
        warmup = self.trunk.config if self.trunk else {}
        optional: dict[str, Any] = {"source_sha256": self.source_sha256, "max_steps": self.max_steps}
        optional |= {"held_out": self.held_out, "needs": needs, "warmup": warmup}
        return recipe_of(self.task) | own | {key: value for key, value in optional.items() if value}

    @property
    def epochs(self) -> int:
        """What it trains itself."""
        return 0 if self.needs else self.last_epoch - (self.warmup_epochs if self.branches else 0)

    @property
    def last_epoch(self) -> int:
        return self.until or self.task.epochs

    @property
    def split_seed(self) -> int:
        return self.seed if self.data_seed is None else self.data_seed

    @property
    def measured(self) -> str:
        """The file of the prediction that its record measures."""
        return PREDICTION_HELD_OUT if self.held_out else PREDICTION

    @cached_property
    def id(self) -> str:
        text = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """What people read of it."""
        return f"{self.task.name} {self.label} seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Where its files lie below the results folder."""
        own = folder_of(self.task.name, self.method, self.id, self.seed)
        own = own if self.split_seed == self.seed else own.with_name(f"{own.name}-data-{self.split_seed}")
        return own.with_name(own.name + TRUNK) if self.until else own

    @property
    def snapshot_folder(self) -> Path:
        """Where the snapshots lie that it leaves."""
        return self.folder if self.until else self.folder.with_name(self.folder.name + TRUNK)


@dataclass(frozen=True)
class Entry:
    """A labelled method of a task: a column (or several, one per score) of its table."""

    label: str
    method: str
    jobs: tuple[Job, ...]
    coverage: float | None = None
    """In per cent, for a training that is meant for one coverage."""
    epoch: int | None = None
    """The state after so many epochs; None is the one the task tests."""
    reason: str = ""
    """Why the task cannot have this method; there are no jobs then."""
    modified: Differences = field(default_factory=dict)
    """Its settings that differ from those of the task's file."""


@dataclass(frozen=True)
class Suite:
    """The grid of one task that a command asks for."""

    task: TaskConfig
    entries: tuple[Entry, ...]
    coverages: tuple[float, ...]
    reference: str
    settings: dict[str, Any]
    """What a table shows beyond its rows and columns."""
    data_sha256: str
    facts: Facts
    remark: str = ""
    """What a reader of the results should know of the data."""
    standard: TaskConfig | None = None
    """The task as its file has it; None where nothing was changed."""
    data_state: str = "present"
    """Or that it is not cached yet, or not even there."""

    def jobs(self) -> list[Job]:
        """Each job once, after those it needs; seeds outermost, so that every column gets its first seeds early."""
        by_seed = sorted((job for entry in self.entries for job in entry.jobs), key=lambda job: job.seed)
        found: dict[Path, Job] = {}
        for job in (job for top in by_seed for job in (*top.needs, top)):
            found.setdefault(job.folder, job)
        return list(found.values())


def in_line(jobs: Iterable[Job]) -> list[Job]:
    """Seed by seed over all tasks. Members of an ensemble go with its seed, which splits their data."""
    return sorted(jobs, key=lambda job: job.split_seed)
