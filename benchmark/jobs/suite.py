"""Describe the grid of one task: its labelled methods, each with a job per seed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.base.schema import identity
from benchmark.config.recipe import Differences, recipe_of
from benchmark.config.task import TaskConfig
from benchmark.data.images import Facts
from benchmark.jobs.job import Job
from benchmark.store.stale import installed_torch


@dataclass(frozen=True)
class Entry:
    """A labelled method of a task: a column (or several, one per score) of its table."""

    label: str
    method: str
    jobs: tuple[Job, ...]
    coverage: float | None = None
    """In per cent, for a training that is meant for one coverage."""
    epoch: int | None = None
    """The number of epochs after which it is measured; None = at the epoch that the task tests."""
    reason: str = ""
    """Why the task cannot have this method; then it has no jobs."""
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
    """'present', 'not cached' or 'absent'."""

    def jobs(self) -> list[Job]:
        """Return each job once, after those it needs; seed by seed, so that every column gets its first seeds early."""
        by_seed = sorted((job for entry in self.entries for job in entry.jobs), key=lambda job: job.seed)
        by_folder: dict[Path, Job] = {}
        for top in by_seed:
            for job in (*top.needs, top):
                by_folder.setdefault(job.folder, job)
        return list(by_folder.values())


def in_line(jobs: Iterable[Job]) -> list[Job]:
    """Sort jobs by seed over all tasks. Members of an ensemble go with its seed, which splits their data."""
    return sorted(jobs, key=lambda job: job.split_seed)


def manifest_of(suite: Suite) -> dict[str, Any]:
    """Return what tables show of a suite: its rows and columns, and the runs behind them."""
    return {
        "name": suite.task.name,
        "task": suite.task.name,
        "title": suite.task.title,
        "coverages": list(suite.coverages),
        "reference": suite.reference,
        "baseline": suite.task.baseline,
        "torch": installed_torch(),
        "standard": recipe_of(suite.standard or suite.task),
        **suite.settings,
        **({"remark": suite.remark} if suite.remark else {}),
        "entries": [entry_of_manifest(entry) for entry in suite.entries],
    }


def entry_of_manifest(entry: Entry) -> dict[str, Any]:
    """Return what a manifest says of an entry: which job its runs are, and how its settings differ from the file's."""
    job = entry.jobs[0] if entry.jobs else None
    described = {
        "label": entry.label,
        "method": entry.method,
        "job": job.id if job else "",
        "code": job.code if job else "",
        "seeds": [each.seed for each in entry.jobs],
    }
    modified = {name: identity(values) for name, values in entry.modified.items()}
    optional = {"coverage": entry.coverage, "epoch": entry.epoch, "reason": entry.reason, "modified": modified}
    return described | {key: value for key, value in optional.items() if value}
