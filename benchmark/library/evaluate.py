"""Evaluate finished runs of a results folder beyond their test images. This trains nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.names import canonical
from benchmark.base.program import program
from benchmark.config.load import task_names
from benchmark.forecast.dry_run import Plan
from benchmark.jobs.suite import Suite
from benchmark.launch.evaluations import evaluation_suites, finished_part, refuse_empty
from benchmark.launch.suites import SuiteMaker, Wanted, task_suites
from benchmark.library.options import PlanningOptions, RunOptions
from benchmark.library.registry import load_methods
from benchmark.library.results import Results, load_results
from benchmark.library.run import Names, request_of, run_options
from benchmark.library.selection import labels_with
from benchmark.library.settings import asked_settings, no_results
from benchmark.library.training import Request, Trained, plan, suite_maker, train
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store


def evaluate_runs(options: RunOptions) -> Trained:
    """Evaluate what is missing of some finished runs, and write the tables of the sets."""
    return train(options, request_evaluations)


def plan_evaluation(options: RunOptions, ahead: PlanningOptions) -> Plan:
    """Return the plan of some evaluations."""
    return plan(options, request_evaluations, ahead)


def request_evaluations(options: RunOptions, store: Store, ahead: PlanningOptions | None) -> Request:
    """Return the suites of evaluations of finished runs."""
    methods = load_methods(options.plugin)
    alone = replace(options, ingredients=())  # labels say which runs have them
    maker = suite_maker(alone, methods, options.seed_list or range(options.seeds or 0), ahead)
    runs = [finished_part(suite, store) for suite in finished_suites(options, maker, store)]
    suites = evaluation_suites(runs, options.evaluate, maker, store)
    if not suites:
        tasks = ", ".join(suite.task.name for suite in runs)
        raise UserError(f"--evaluate: the file of {tasks} names no evaluation set; name some, e.g. corruptions")
    refuse_empty(suites)
    return request_of(suites, methods, store)


def finished_suites(options: RunOptions, maker: SuiteMaker, store: Store) -> Iterator[Suite]:
    """Yield the grids that the folder has runs of: the tasks, labels and seeds that are asked for, or all shown."""
    shown = {manifest.task: manifest for manifest in store.manifests() if not manifest.set_of}
    if not shown:
        raise no_results(store.root)
    for name in options.datasets or shown_tasks(shown):
        manifest = shown.get(Path(name).stem) or next(
            (each for task, each in shown.items() if canonical(task) == canonical(Path(name).stem)), None
        )
        if manifest is None:
            raise UserError(f"no results of '{name}' in '{store.root}'; it has {', '.join(shown)}")
        entries = [entry for entry in manifest.entries if not entry.imported]
        owners = {entry.label: entry.method for entry in entries}
        labels = options.methods or tuple(owners)
        if options.ingredients:
            kind = f"method in the results of {manifest.task}:"
            labels = tuple(labels_with(options.methods or ("all",), options.ingredients, owners, kind))
        seeds = maker.seeds or tuple(sorted({seed for entry in entries for seed in entry.seeds}))
        reference = options.reference or (manifest.reference if manifest.reference in labels else None)
        coverages = options.coverages or manifest.coverages
        wanted = Wanted(labels, (), coverages, reference, asked_settings(options))
        yield from task_suites([name], wanted, replace(maker, seeds=seeds), store)


def shown_tasks(shown: dict[str, Manifest]) -> Sequence[str]:
    """Return the tasks of a results folder that the suite has a file of, and runs that were trained."""
    known = task_names()
    trained = [name for name, each in shown.items() if any(not entry.imported for entry in each.entries)]
    foreign = [name for name in trained if name not in known]
    if foreign:
        raise UserError(
            f"the task file of '{foreign[0]}' is not among those of the suite; name the tasks to evaluate: "
            f"{program()} evaluate --datasets PATH.toml"
        )
    return trained


def evaluate(
    sets: Names | None = None,
    results: str | PathLike[str] = "results",
    tasks: Names | None = None,
    methods: Names | None = None,
    seeds: int | Iterable[int] | None = None,
    *,
    set: Mapping[str, Any] | Iterable[str] = (),
    plugins: Names = (),
    **more: Any,
) -> Results:
    """Evaluate finished runs of a results folder on some sets, and return all results of the folder.

    `sets` are names of the task's own evaluation sets, or what says by itself what they are: "corruptions",
    "new=svhn", "humans=counts.npz"; None means all that the task's file names. The rest means what it means in `run`.
    Bad input raises UserError, jobs without a result raise JobsFailed.
    """
    options = run_options(tasks, methods, seeds, results, set, plugins, {**more, "evaluate": sets})
    evaluate_runs(options)
    return load_results(results, plugins=options.plugin)
