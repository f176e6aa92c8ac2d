"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged
from benchmark.base.limits import Within
from benchmark.commands.dry_run import add_plan, check_plan
from benchmark.commands.options import (
    MakeRegistry,
    add_data_folders,
    add_device,
    add_plugins,
    add_selection,
    add_set,
    add_speed,
    add_table_options,
    asked_settings,
    num_seeds,
    whole,
)
from benchmark.commands.training import add_training, plan_or_train, suite_maker
from benchmark.jobs.suite import manifest_of
from benchmark.paper.assemble import MAKERS
from benchmark.report.update import make_parts, try_report
from benchmark.store.manifest import with_earlier
from benchmark.store.store import Store
from benchmark.tables.assemble import assemble
from benchmark.tables.render.write import write_tables

HELP = "train what is missing of a grid and write its tables (the default command)"
DEFAULT_TASKS = ("digits", "gaussians")
"""Need no download and finish in minutes."""
SEED = Within(0, 2**32 - 1, "it names a stream of random numbers, and any other does as well")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to run")
    add_selection(what)
    seeds = what.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seeds", type=num_seeds, metavar="N", help="seeds 0..N-1 (default: the task's own number, usually 5)"
    )
    seeds.add_argument("--seed-list", nargs="+", type=whole(SEED), metavar="SEED", help="these seeds")
    add_set(what)
    add_plugins(what)
    add_device(what)
    add_data_folders(what)
    add_table_options(parser.add_argument_group("results and tables"))
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.launch.suites import Wanted, task_suites

    check_plan(arguments)
    if any(override.strip().startswith("bound.") for override in arguments.set) and not arguments.track_bound:
        raise UserError("--set bound.… is for --track-bound; add --track-bound, or leave it out")
    methods, store = make_registry(arguments.plugin), Store(arguments.results)
    maker = suite_maker(arguments, methods, arguments.seed_list or range(arguments.seeds or 0))
    wanted = Wanted(arguments.methods or (), arguments.coverages or (), arguments.reference, asked_settings(arguments))
    suites = task_suites(arguments.datasets or DEFAULT_TASKS, wanted, maker, store)
    manifests = [manifest_of(suite) for suite in suites]

    def finish() -> None:
        show_results(manifests, store, quiet=arguments.quiet)

    return plan_or_train(suites, store, arguments, methods, noting=manifests_noted(manifests, store), finish=finish)


@contextmanager
def manifests_noted(manifests: Sequence[dict[str, Any]], store: Store) -> Iterator[None]:
    """Write manifests in the place of those before, whose runs they keep in mind."""
    for manifest in manifests:
        before = None
        with suppress(Damaged):
            before = store.read_json(Path("manifests", f"{manifest['name']}.json"))
        store.write_manifest(manifest["name"], with_earlier(manifest, before))
    yield


def show_results(manifests: Sequence[dict[str, Any]], store: Store, *, quiet: bool) -> None:
    """Write tables and page, and say where things are."""
    shown = [assemble(manifest, store) for manifest in manifests]
    paths = [path for each in shown for path in write_tables(each, store.root, show=not quiet)]
    report = try_report(store, MAKERS, make_parts("task", manifests, shown, store))
    if not quiet:
        tables = "\n".join(f"  {path}" for path in paths)
        records = f"{store.root}/<task>/<method>/<job>/seed-<n>/"
        print(f"Tables:\n{tables}\n{report}\nRecords, predictions and learning curves: {records}")
