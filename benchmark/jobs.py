"""A job: one method trained on one task with one seed. Its id is the hash of all that can change its result."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.interface import Contestant, Derived, Member, Method
from benchmark.names import canonical, name_at, unknown_name
from benchmark.schema import build, identity
from benchmark.scores import TITLES
from benchmark.sources import Facts
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
    "channels_last",
    "amp",
    "compile",
    "checkpoint",
    "evaluate_at",
)
"""The fields of a task that every method of it shares and that can change a result."""


class Methods(Protocol):
    """What the core asks of the collection of methods; it never imports one."""

    def names(self) -> list[str]: ...
    def get(self, name: str) -> type[Contestant]: ...
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
    needs: "tuple[Job, ...]" = ()
    """Jobs that must be done before: what a derived method combines, or the training that a method takes over."""
    takes_over: bool = False
    """Whether it begins with the final network of what it needs, and trains nothing."""
    data_seed: int | None = None
    """Splits the data where the job's own seed does not: members of an ensemble see the ensemble's images."""
    label: str = ""
    """What people call it; no part of its identity."""
    trunk: "Job | None" = None
    """The training whose first `warmup_epochs` epochs are this one's warm-up, to the bit."""
    branches: bool = False
    """Whether it begins with the snapshot that its trunk leaves after the warm-up."""
    snapshots: tuple[int, ...] = ()
    """After so many epochs it leaves its state for others to branch off."""
    until: int = 0
    """Trains only so many epochs and leaves nothing but snapshots; 0 = all."""

    def identity(self) -> dict[str, Any]:
        described = {name: value for name, value in identity(self.task).items() if name in RECIPE}
        described |= {"method": self.method, "config": self.config, "data_sha256": self.data_sha256}
        needs = sorted({need.id for need in self.needs})
        warmup = self.trunk.config if self.trunk else {}
        optional = {"source_sha256": self.source_sha256, "max_steps": self.max_steps, "needs": needs, "warmup": warmup}
        return described | {key: value for key, value in optional.items() if value}

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

    @cached_property
    def id(self) -> str:
        text = json.dumps(self.identity(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Where its files lie below the results folder."""
        own = folder_of(self.task.name, self.method, self.id, self.seed)
        own = own if self.split_seed == self.seed else own.with_name(f"{own.name}-data-{self.split_seed}")
        return own.with_name(f"{own.name}-trunk") if self.until else own

    @property
    def snapshot_folder(self) -> Path:
        """Where the snapshots lie that it leaves."""
        return self.folder if self.until else self.folder.with_name(f"{self.folder.name}-trunk")


@dataclass(frozen=True)
class Entry:
    """A labelled method of a task: a column (or several, one per score) of its table."""

    label: str
    method: str
    jobs: tuple[Job, ...]
    coverage: float | None = None
    """In per cent, for a training that is meant for one coverage."""
    reason: str = ""
    """Why the task cannot have this method; there are no jobs then."""


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

    def jobs(self) -> list[Job]:
        """Each job once, after those it needs; seeds outermost, so that every column gets its first seeds early."""
        by_seed = sorted((job for entry in self.entries for job in entry.jobs), key=lambda job: job.seed)
        found: dict[Path, Job] = {}
        for job in (job for top in by_seed for job in (*top.needs, top)):
            found.setdefault(job.folder, job)
        return list(found.values())


def label_owners(methods: Methods) -> dict[str, str]:
    """Every label → the file that makes it."""
    owners: dict[str, str] = {}
    for name in methods.names():
        for label in methods.get(name).labels:
            if canonical(label) in {canonical(known) for known in owners}:
                raise UserError(f"the label '{label}' of '{name}' is taken by another method; rename it")
            owners[label] = name
    for label in owners:
        base, _, score = label.rpartition("+")
        if base in owners and canonical(score) in map(canonical, TITLES):
            raise UserError(f"the label '{label}' would mean '{base}' read with the score {score}; rename it")
    return owners


def in_order(labels: Iterable[str], task: TaskConfig) -> list[str]:
    """As the task lists its methods, which is the order of the published table; others after them."""
    place = {canonical(name): index for index, name in enumerate(task.methods)}
    return sorted(labels, key=lambda label: place.get(canonical(label), len(place)))


def resolve_config(task: TaskConfig, label: str, owner: str, method: type[Contestant], **fixed: Any) -> Any:
    """Defaults ← the task's settings of the file ← the label's own ← the task's settings of the label."""
    of_file: dict[str, Any] = {}
    of_label: dict[str, Any] = {}
    for name, settings in task.method.items():
        if name != owner and canonical(name) == canonical(label):
            of_label |= settings
        elif canonical(name) == canonical(owner):
            of_file |= settings
    settings = of_file | dict(method.labels[label]) | of_label | fixed
    return build(method.Config, settings, f"{task.name}: method.{label}")


def warmup_epochs(task: TaskConfig, label: str, method: type[Contestant], config: Any, names: Sequence[str]) -> int:
    """Epochs of the declared warm-up; a warm-up that leaves the method no epoch is refused."""
    if not issubclass(method, Method) or method.warmup is None:
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


@dataclass(frozen=True)
class Planner:
    """Makes the jobs of one task."""

    task: TaskConfig
    methods: Methods
    data_sha256: str
    max_steps: int = 0

    def entries(self, label: str, owner: str, seeds: Sequence[int]) -> Iterator[Entry]:
        """One entry for a label, or one for each coverage that the method is trained for."""
        method = self.methods.get(owner)
        if method.needs_validation and not self.task.data.has_validation:
            yield Entry(label, owner, (), reason="needs validation images, and data.val is 0")
            return
        field = method.one_per_coverage if issubclass(method, Method) else None
        self.refuse_set(field, label, owner)
        for coverage in self.task.model_coverages if field else (None,):
            fixed = {field: coverage / 100} if field and coverage else {}
            config = resolve_config(self.task, label, owner, method, **fixed)
            name = name_at(label, coverage)
            yield Entry(label, owner, tuple(self.job(name, owner, config, seed) for seed in seeds), coverage)

    def refuse_set(self, field: str | None, label: str, owner: str) -> None:
        """What model_coverages sets cannot be set otherwise."""
        for name, settings in self.task.method.items():
            if canonical(name) in (canonical(label), canonical(owner)) and field in settings:
                raise UserError(f"{self.task.name}: method.{name}.{field} is set by model_coverages; set that instead")

    def job(self, label: str, owner: str, config: Any, seed: int) -> Job:
        method = self.methods.get(owner)
        members = members_of(method, config, seed, self.task.epochs)
        warmup = warmup_epochs(self.task, label, method, config, self.methods.names())
        return Job(
            self.task,
            owner,
            identity(config),
            self.data_sha256,
            self.methods.source_hash(owner),
            seed,
            warmup,
            self.max_steps,
            needs=tuple(self.member(label, method, member, seed) for member in members),
            takes_over=issubclass(method, Method) and bool(members),
            label=label,
            trunk=self.trunk(method, seed) if warmup else None,
        )

    def trunk(self, method: type[Contestant], seed: int) -> Job | None:
        """The job that the declared warm-up would be by itself; one that has a warm-up of its own is not shared."""
        name = method.warmup if issubclass(method, Method) else None
        trained = self.methods.get(name) if name else None
        if name is None or trained is None or not issubclass(trained, Method) or trained.warmup is not None:
            return None
        first = next(iter(trained.labels))
        return self.job(first, name, resolve_config(self.task, first, name, trained), seed)

    def member(self, label: str, method: type[Contestant], member: Member, seed: int) -> Job:
        """A training that another job needs, as the grid itself would make it but for its recipe."""
        if member.method not in self.methods.names():
            raise unknown_name(member.method, self.methods.names(), f"method that {label} needs:")
        trained = self.methods.get(member.method)
        if not issubclass(trained, Method) or trained.starts_from is not None:
            raise UserError(f"{label} needs '{member.method}', which trains nothing itself; name a method that trains")
        if issubclass(method, Method) and (method.extra_outputs or trained.extra_outputs):
            raise UserError(f"{label} starts from '{member.method}': neither may have outputs beyond the classes")
        planner = replace(self, task=changed_recipe(self.task, member.recipe, label))
        if member.epoch not in (None, *planner.task.evaluate_at):
            raise UserError(f"{label} needs epoch {member.epoch} of '{member.method}'; name it in evaluate_at too")
        first = next(iter(trained.labels))
        config = resolve_config(planner.task, first, member.method, trained)
        job = planner.job(first, member.method, config, member.seed)
        if member.seed == seed:
            return job
        return replace(job, data_seed=seed, trunk=job.trunk and replace(job.trunk, data_seed=seed))


def changed_recipe(task: TaskConfig, changes: Mapping[str, Any], label: str) -> TaskConfig:
    """The task with some of its fields replaced; in a table of settings, only the values that are named."""
    values = dict(vars(task))
    for name, value in changes.items():
        old = getattr(task, name, None)
        values[name] = {**vars(old), **value} if is_dataclass(old) and isinstance(value, Mapping) else value
    plain = {name: vars(value) if is_dataclass(value) else value for name, value in values.items()}
    return build(TaskConfig, plain, f"{task.name}: recipe of {label}")


def members_of(method: type[Contestant], config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
    if issubclass(method, Derived):
        try:
            members = list(method.members(config, seed, num_epochs))
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(f"{method.__name__}.members fails: {reason}") from error
        if not members:
            raise UserError(f"{method.__name__}.members names no training to combine")
        return members
    if issubclass(method, Method) and method.starts_from is not None:
        return [Member(method.starts_from, seed)]
    return []


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
    planner, seeds = Planner(task, methods, data_sha256, max_steps), list(seeds)
    return tuple(entry for label in in_order(labels, task) for entry in planner.entries(label, owners[label], seeds))
