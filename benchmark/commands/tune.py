"""`tune`: try the grid of a method on held-out training images, keep every trial, write the winner as a task file."""

import argparse

from benchmark.commands.dry_run import add_plan, check_plan
from benchmark.commands.options import (
    MakeRegistry,
    add_data_folders,
    add_device,
    add_plugins,
    add_results,
    add_set,
    add_speed,
    num_seeds,
)
from benchmark.commands.training import add_training, plan_or_train, suite_maker
from benchmark.store.store import Store

HELP = "search the settings of a method on held-out training images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task by name or file; its [tune] tables are the grids")
    parser.add_argument("method", metavar="METHOD", help="the method by its label (see: list)")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=V,V",
        help="values to try instead of the task's grid, of the method's settings or of the task's fields, e.g. "
        "weight=0.1,1 or optimizer.lr=0.1,0.05 (repeatable; all combinations)",
    )
    add_set(parser)
    seeds = "seeds 0..N-1 of each trial, whose mean counts (default: 1)"
    parser.add_argument("--seeds", type=num_seeds, default=1, metavar="N", help=seeds)
    add_results(parser)
    add_plugins(parser)
    add_device(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.launch.suites import search_suite
    from benchmark.tune.ledger_files import LedgerFiles

    check_plan(arguments)
    methods, store = make_registry(arguments.plugin), Store(arguments.results)
    maker = suite_maker(arguments, methods, range(arguments.seeds))
    search = search_suite(arguments.task, arguments.method, arguments.grid, maker, store)
    files = LedgerFiles(store, search.suite.task, arguments.task, search.label)
    trials = files.kept(search.tried, methods, search.split, arguments.seeds)

    def finish() -> None:
        if not arguments.quiet:
            print(files.text(arguments.plugin))

    return plan_or_train([search.suite], store, arguments, methods, noting=trials, finish=finish)
