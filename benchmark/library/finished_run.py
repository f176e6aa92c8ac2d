"""Find one finished run in a results folder, by the names that its tables show, and what it was trained with."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import canonical, match_name, unknown_name
from benchmark.base.program import program
from benchmark.interface import Contestant, Derived
from benchmark.jobs.evaluations import OF_EPOCHS, combines_epochs
from benchmark.jobs.job import Job, Methods
from benchmark.launch.evaluations import finished_part
from benchmark.library.evaluate import finished_suites
from benchmark.library.guarantee_options import ExportOptions
from benchmark.library.options import RunOptions
from benchmark.library.settings import no_results
from benchmark.library.training import suite_maker
from benchmark.measure.labels import name_at
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.record import Record
from benchmark.store.store import Store
from benchmark.train.outcome.combine import finished_record


@dataclass(frozen=True)
class FoundRun:
    """A finished run, with the trainings whose networks it uses."""

    job: Job
    entry: ManifestEntry
    title: str
    """Of its task."""
    method: type[Contestant]
    store: Store

    @property
    def name(self) -> str:
        return f"{self.job.task.name} {self.label} seed {self.job.seed}"

    @property
    def label(self) -> str:
        return name_at(self.entry.label, self.entry.coverage)

    @cached_property
    def record(self) -> Record:
        return finished_record(self.store, self.job)

    @cached_property
    def finished(self) -> Finished:
        return Finished(self.job.folder, self.store, None, self.record.checksums)

    @property
    def trainings(self) -> tuple[Job, ...]:
        """Return the jobs whose networks predict: those that it combines, or itself."""
        return self.job.needs if issubclass(self.method, Derived) else (self.job,)


def find_run(options: ExportOptions, methods: Methods, store: Store) -> FoundRun:
    """Return the run that is meant. Raise UserError where it is not there, or not finished."""
    manifest = manifest_of_task(options.task, store)
    entry = entry_named(options.method, manifest)
    if options.seed not in entry.seeds:
        seeds = ", ".join(map(str, entry.seeds)) or "none"
        raise UserError(f"{manifest.task} {name_of(entry)} has no run with seed {options.seed}; its seeds: {seeds}")
    job = planned_job(options, entry, methods, store)
    if combines_epochs(job, methods):
        raise UserError(f"{name_of(entry)} cannot be exported: it {OF_EPOCHS}")
    return FoundRun(job, entry, manifest.title, methods.get(job.method), store)


def manifest_of_task(task: str, store: Store) -> Manifest:
    shown = {manifest.task: manifest for manifest in store.manifests() if not manifest.set_of}
    if not shown:
        raise no_results(store.root)
    return shown[match_name(Path(task).stem, shown, f"task with results in '{store.root}':")]


def name_of(entry: ManifestEntry) -> str:
    return name_at(entry.label, entry.coverage)


def entry_named(name: str, manifest: Manifest) -> ManifestEntry:
    """Return the column that a name means: a label, with its coverage where it has several, or a method's file."""
    entries = [entry for entry in manifest.entries if entry.epoch is None]
    ways: tuple[Callable[[ManifestEntry], str], ...] = (name_of, lambda each: each.label, lambda each: each.method)
    by_way = ([each for each in entries if canonical(way(each)) == canonical(name)] for way in ways)
    found = next(filter(None, by_way), [])
    known = list(map(name_of, found or entries))
    if len(found) > 1:
        raise UserError(f"'{name}' means several methods of {manifest.task}: name one of {', '.join(known)}")
    if not found:
        raise unknown_name(name, known, f"method of {manifest.task}:")
    if found[0].imported:
        raise UserError(f"{known[0]} was imported: there are predictions of it, and no network that could be exported")
    if found[0].reason:
        raise UserError(f"{manifest.task} has no run of {known[0]}: {found[0].reason}")
    return found[0]


def planned_job(options: ExportOptions, entry: ManifestEntry, methods: Methods, store: Store) -> Job:
    """Return the job of a run as the command would plan it today. Raise UserError unless it is finished."""
    asked = RunOptions(
        datasets=(options.task,),
        methods=(entry.label,),
        seed_list=(options.seed,),
        reference=entry.label,
        set=options.set,
        plugin=options.plugin,
        results=str(store.root),
        device=options.device,
        data_dir=options.data_dir,
        cache_dir=options.cache_dir,
        quiet=options.quiet,
    )
    (suite,) = finished_suites(asked, suite_maker(asked, methods, (options.seed,), None), store)
    jobs = [
        job
        for planned in finished_part(suite, store).entries
        for job in planned.jobs
        if (planned.coverage, planned.epoch) == (entry.coverage, None)
    ]
    if not jobs:
        raise UserError(f"{suite.task.name} {name_of(entry)} seed {options.seed} is not finished; run it first")
    return jobs[0]


def refuse_lost_weights(run: FoundRun, options: ExportOptions) -> None:
    """Raise UserError where the final weights of a training were not kept, with the command that trains it again."""
    for job in run.trainings:
        if not any(run.store.has_checkpoint(folder) for folder in job.weights_folders):
            raise UserError(
                f"the final weights of {job.name} were not kept; train them again, the same bits, with: "
                f"{again(run, options)}"
            )


def again(run: FoundRun, options: ExportOptions) -> str:
    """Return the command that trains a run again and keeps its weights."""
    return shlex.join(
        [
            *program().split(),
            *("--datasets", options.task, "--methods", run.entry.label, "--reference", run.entry.label),
            *("--seed-list", str(run.job.seed), "--keep-weights"),
            *(["--keep-features"] if run.finished.test.prediction.features is not None else []),
            *repeated("--set", options.set),
            *repeated("--plugin", map(str, options.plugin)),
            *("--results", f"{options.results.rstrip('/')}-with-weights"),
        ]
    )


def repeated(flag: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]
