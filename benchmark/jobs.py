"""A job: one method trained on one task with one seed. Its id is the hash of all that can change its result."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.interface import Method
from benchmark.names import canonical, unknown_name
from benchmark.schema import build, identity
from benchmark.store import folder_of

RECIPE = (
    "data",
    "network",
    "augment",
    "optimizer",
    "schedule",
    "epochs",
    "batch_size",
    "eval_batch_size",
    "threads",
    "checkpoint",
)
"""The fields of a task that every method of it shares and that can change a result."""


class Methods(Protocol):
    """What the core asks of the collection of methods; it never imports one."""

    def names(self) -> list[str]: ...
    def get(self, name: str) -> type[Method]: ...
    def source_hash(self, name: str) -> str | None: ...


@dataclass(frozen=True)
class Job:
    task: TaskConfig
    method: str
    """The method's file name."""
    config: dict[str, Any]
    """The method's resolved settings as plain values: a job travels to processes that have not loaded its method."""
    data_sha256: str
    source_sha256: str | None
    """Hash of a plugin's source; None for the methods of the suite."""
    seed: int
    warmup_epochs: int = 0
    """Epochs that the method's declared warm-up trains in its place; follows from `config`."""
    max_steps: int = 0
    """Train and predict only so many batches of each phase, to try a configuration; 0 = all."""

    def identity(self) -> dict[str, Any]:
        described = {name: identity(getattr(self.task, name)) for name in RECIPE}
        described |= {"method": self.method, "config": self.config, "data_sha256": self.data_sha256}
        optional = {"source_sha256": self.source_sha256, "max_steps": self.max_steps}
        return described | {key: value for key, value in optional.items() if value}

    @cached_property
    def id(self) -> str:
        text = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Where its files lie below the results folder."""
        return folder_of(self.task.name, self.method, self.id, self.seed)


@dataclass(frozen=True)
class Entry:
    """A labelled method of a task: a column (or several, one per score) of its table."""

    label: str
    jobs: tuple[Job, ...]

    @property
    def method(self) -> str:
        return self.jobs[0].method


@dataclass(frozen=True)
class Suite:
    """The grid of one task that a command asks for."""

    task: TaskConfig
    entries: tuple[Entry, ...]
    coverages: tuple[float, ...]
    reference: str
    test: str

    def jobs(self) -> list[Job]:
        """Each job once, seeds outermost, so that every column gets its first seeds early."""
        by_seed = sorted((job for entry in self.entries for job in entry.jobs), key=lambda job: job.seed)
        return list({job.folder: job for job in by_seed}.values())


def label_owners(methods: Methods) -> dict[str, str]:
    """Every label → the file that makes it."""
    owners: dict[str, str] = {}
    for name in methods.names():
        for label in methods.get(name).labels:
            if canonical(label) in {canonical(known) for known in owners}:
                raise UserError(f"the label '{label}' of '{name}' is taken by another method; rename it")
            owners[label] = name
    return owners


def in_order(labels: Iterable[str], task: TaskConfig) -> list[str]:
    """As the task lists its methods, which is the order of the published table; others after them."""
    place = {canonical(name): index for index, name in enumerate(task.methods)}
    return sorted(labels, key=lambda label: place.get(canonical(label), len(place)))


def resolve_config(task: TaskConfig, label: str, owner: str, method: type[Method]) -> Any:
    """Defaults ← the task's settings of the file ← the label's own ← the task's settings of the label."""
    of_file: dict[str, Any] = {}
    of_label: dict[str, Any] = {}
    for name, settings in task.method.items():
        if name != owner and canonical(name) == canonical(label):
            of_label |= settings
        elif canonical(name) == canonical(owner):
            of_file |= settings
    return build(method.Config, of_file | dict(method.labels[label]) | of_label, f"{task.name}: method.{label}")


def warmup_epochs(task: TaskConfig, label: str, method: type[Method], config: Any, names: Sequence[str]) -> int:
    """Epochs of the declared warm-up; a warm-up that leaves the method no epoch is refused."""
    if method.warmup is None:
        return 0
    if method.warmup not in names:
        raise unknown_name(method.warmup, names, f"warm-up method of {label}:")
    epochs = int(config.warmup_epochs)
    if not 0 <= epochs < task.epochs:
        raise UserError(
            f"{task.name}: method.{label}: warmup_epochs = {epochs} must be at least 0 and below epochs = "
            f"{task.epochs}; set both, e.g. --set method.{label}.warmup_epochs=0"
        )
    return epochs


def check_settings(task: TaskConfig, methods: Methods, owners: Mapping[str, str]) -> None:
    """Settings of methods that do not take part are checked too."""
    for name, settings in task.method.items():
        known = [owner for label, owner in owners.items() if canonical(name) in (canonical(label), canonical(owner))]
        if not known:
            raise unknown_name(name, [*owners, *owners.values()], f"method in {task.name}: method.{name}:")
        build(methods.get(known[0]).Config, settings, f"{task.name}: method.{name}")


def plan(
    task: TaskConfig,
    labels: Iterable[str],
    seeds: Iterable[int],
    methods: Methods,
    data_sha256: str,
    max_steps: int = 0,
) -> tuple[Entry, ...]:
    """The entries of a task: each label with one job per seed."""
    owners = label_owners(methods)
    check_settings(task, methods, owners)
    seeds, entries = list(seeds), []
    for label in in_order(labels, task):
        owner = owners[label]
        config = resolve_config(task, label, owner, methods.get(owner))
        source = methods.source_hash(owner)
        warmup = warmup_epochs(task, label, methods.get(owner), config, methods.names())
        settings = identity(config)
        jobs = tuple(Job(task, owner, settings, data_sha256, source, seed, warmup, max_steps) for seed in seeds)
        entries.append(Entry(label, jobs))
    return tuple(entries)
