"""Train what is missing of a grid of tasks, methods and seeds, then write its tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged
from benchmark.base.names import unknown_name
from benchmark.forecast.dry_run import Plan
from benchmark.jobs.cells import read_factors
from benchmark.jobs.job import Methods
from benchmark.jobs.suite import Suite, manifest_of
from benchmark.launch.evaluations import evaluation_suites
from benchmark.launch.suites import Wanted, task_suites
from benchmark.library.options import PlanningOptions, RunOptions
from benchmark.library.registry import load_methods
from benchmark.library.results import Results, load_results
from benchmark.library.settings import asked_settings
from benchmark.library.tables import Tables, files_remark, write_results
from benchmark.library.training import Request, Trained, plan, suite_maker, train
from benchmark.store.manifest import Manifest, check_owners, with_earlier
from benchmark.store.store import Store

DEFAULT_TASKS = ("digits", "gaussians")
"""Need no download and finish in minutes."""
NOT_OF_RUN = ("datasets", "plugin", "seed_list", "max_steps")
"""Options that `run` has under another name, or that leave no results."""
Names = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One name, or several."""


def train_tasks(options: RunOptions) -> Trained:
    """Train what is missing of a grid, and write its tables. Raise JobsFailed where some jobs have no result."""
    return train(options, request_tasks)


def plan_tasks(options: RunOptions, ahead: PlanningOptions) -> Plan:
    """Return the plan of a grid. Nothing is trained."""
    return plan(options, request_tasks, ahead)


def request_tasks(options: RunOptions, store: Store, ahead: PlanningOptions | None) -> Request:
    """Return the suites of a grid, and how its manifests and tables are written."""
    if any(override.strip().startswith("bound.") for override in options.set) and not options.track_bound:
        raise UserError("--set bound.… needs --track-bound; add --track-bound, or leave out --set bound.…")
    methods = load_methods(options.plugin)
    asked = asked_settings(options)
    maker = suite_maker(options, methods, options.seed_list or range(options.seeds or 0), ahead)
    if options.factors and options.ingredients:
        raise UserError("factors say which ingredients the methods get; leave out the ingredients for all of them")
    wanted = Wanted(
        options.methods or (), read_factors(options.factors), options.coverages or (), options.reference, asked
    )
    suites = task_suites(options.datasets or DEFAULT_TASKS, wanted, maker, store)
    suites += evaluation_suites(suites, options.evaluate, maker, store)
    return request_of(suites, methods, store)


def request_of(suites: Sequence[Suite], methods: Methods, store: Store) -> Request:
    """Return the request for some suites, which ends with their tables."""
    manifests = [manifest_of(suite) for suite in suites]
    check_owners([*(before for each in manifests if (before := manifest_before(each, store))), *manifests])

    def remark(paths: Sequence[Path], report: str) -> str:
        records = f"{store.root}/<task>/<method>/<job>/seed-<n>/"
        return f"{files_remark(paths, report)}\nRecords, predictions and learning curves: {records}"

    def finish() -> Tables:
        return write_results("task", manifests, store, remark)

    return Request(suites, methods, manifests_noted(manifests, store), finish)


@contextmanager
def manifests_noted(manifests: Sequence[Manifest], store: Store) -> Iterator[None]:
    """Write manifests in the place of those before, whose runs they keep in mind."""
    for manifest in manifests:
        store.write_manifest(with_earlier(manifest, manifest_before(manifest, store)))
    yield


def manifest_before(manifest: Manifest, store: Store) -> Manifest | None:
    """Return the manifest of the same name that an earlier command wrote, if it is there and whole."""
    with suppress(Damaged):
        return store.read_manifest(store.root / "manifests" / f"{manifest.name}.json")
    return None


def run(
    tasks: Names | None = None,
    methods: Names | None = None,
    seeds: int | Iterable[int] | None = None,
    results: str | PathLike[str] = "results",
    *,
    set: Mapping[str, Any] | Iterable[str] = (),
    plugins: Names = (),
    **more: Any,
) -> Results:
    """Train what is missing of a grid, write its tables and its report, and return all results of the folder.

    Tasks, methods and the rest mean what they mean on the command line: what is left out, the task says. `seeds` is a
    number (0 to N - 1) or a list of them, `set` a mapping such as {"optimizer.lr": 0.05}, `plugins` files of your
    own. `more` are the other options of the command `run`, by name: device, workers, coverages, reference,
    scores, quiet, keep_weights … (`RunOptions` has them all). Bad input raises UserError, jobs without a result raise
    JobsFailed once the tables of the others are written. An interrupt raises KeyboardInterrupt once every job has saved
    its state; the same call continues from there.
    """
    options = run_options(tasks, methods, seeds, results, set, plugins, more)
    train_tasks(options)
    return load_results(results, plugins=options.plugin)


def run_options(
    tasks: Names | None,
    methods: Names | None,
    seeds: int | Iterable[int] | None,
    results: str | PathLike[str],
    set: Mapping[str, Any] | Iterable[str],
    plugins: Names,
    more: Mapping[str, Any],
) -> RunOptions:
    """Return the options of a grid as the command line would make them."""
    known = [field.name for field in fields(RunOptions) if field.name not in NOT_OF_RUN]
    for name in more:
        if name not in known:
            raise unknown_name(name, known, "option of run:")
    settings = [f"{key}={value}" for key, value in set.items()] if isinstance(set, Mapping) else set
    several = isinstance(seeds, Iterable) and not isinstance(seeds, str)
    named = {"seed_list": seeds} if several else {"seeds": seeds}
    asked: dict[str, Any] = {
        "datasets": tasks,
        "methods": methods,
        "results": results,
        "set": settings,
        "plugin": plugins,
        **named,
    }
    return RunOptions(**asked, **more)
