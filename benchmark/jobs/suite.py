"""Describe the grid of one task: its labelled methods, each with a job per seed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.base.names import canonical
from benchmark.base.schema import identity
from benchmark.config.recipe import Differences, recipe_of
from benchmark.config.task import TaskConfig
from benchmark.data.images import Facts
from benchmark.jobs.job import Evaluated, Job, results_name
from benchmark.store.manifest import Manifest, ManifestEntry, TableSettings
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
    base: str = ""
    """The label without its ingredients, where it has some."""
    levels: tuple[str, ...] = ()
    """In a crossed grid: its level of each factor."""


@dataclass(frozen=True)
class Suite:
    """The grid of one task that a command asks for."""

    task: TaskConfig
    entries: tuple[Entry, ...]
    coverages: tuple[float, ...]
    reference: str
    settings: TableSettings
    """How its table is made, where that was asked for."""
    data_sha256: str
    facts: Facts
    remark: str = ""
    """What a reader of the results should know of the data."""
    standard: TaskConfig | None = None
    """The task as its file has it; None where nothing was changed."""
    factors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of a crossed grid: the names of its factors, each with its levels."""
    data_state: str = "present"
    """'present', 'not cached' or 'absent'."""
    evaluated: Evaluated | None = None
    """The evaluation set that its jobs predict with the networks of others; None where they train."""

    @property
    def name(self) -> str:
        """Return the name under which its results lie."""
        return results_name(self.task.name, self.evaluated)

    @property
    def title(self) -> str:
        return f"{self.task.title}, {self.evaluated.title}" if self.evaluated else self.task.title

    def jobs(self) -> list[Job]:
        """Return each job once, after those it needs; seed by seed, so that every column gets its first seeds early.

        The runs that are evaluated are those of another suite.
        """
        by_seed = sorted((job for entry in self.entries for job in entry.jobs), key=lambda job: job.seed)
        by_folder: dict[Path, Job] = {}
        for top in by_seed:
            for job in (*top.all_needs, top):
                if (job.evaluates is None) == (self.evaluated is None):
                    by_folder.setdefault(job.folder, job)
        return list(by_folder.values())


def in_line(jobs: Iterable[Job]) -> list[Job]:
    """Sort jobs by seed over all tasks. Members of an ensemble go with its seed, which splits their data."""
    return sorted(jobs, key=lambda job: job.split_seed)


def manifest_of(suite: Suite) -> Manifest:
    """Return what tables show of a suite: its rows and columns, and the runs behind them."""
    manifest = Manifest(
        name=suite.name,
        task=suite.name,
        title=suite.title,
        coverages=suite.coverages,
        reference=suite.reference,
        baseline=shown_label(suite.task.baseline, suite.entries),
        torch=installed_torch(),
        entries=tuple(map(entry_of_manifest, suite.entries)),
        standard=recipe_of(suite.standard or suite.task),
        remark=suite.remark,
        factors=suite.factors,
        set_of=suite.task.name if suite.evaluated else "",
    )
    return suite.settings.applied_to(manifest)


def shown_label(label: str, entries: Iterable[Entry]) -> str:
    """Return the label of the column that a task's own label means: with the ingredients that all its runs have."""
    names = [(canonical(entry.label), canonical(entry.base), entry.label) for entry in entries]
    meant = canonical(label)
    exact = [shown for name, _, shown in names if name == meant]
    return next(iter([*exact, *(shown for _, base, shown in names if base == meant)]), label)


def entry_of_manifest(entry: Entry) -> ManifestEntry:
    """Return what a manifest says of an entry: which job its runs are, and how its settings differ from the file's."""
    job = entry.jobs[0] if entry.jobs else None
    return ManifestEntry(
        label=entry.label,
        method=entry.method,
        job=job.id if job else "",
        seeds=tuple(each.seed for each in entry.jobs),
        code=job.code if job else "",
        coverage=entry.coverage,
        epoch=entry.epoch,
        reason=entry.reason,
        base=entry.base if entry.levels else "",
        levels=entry.levels,
        modified={name: identity(values) for name, values in entry.modified.items()},
    )
