"""`tune`: try the grid of a method on held-out training images, keep every trial, write the winner as a task file."""

import argparse
from functools import partial

from benchmark.base.limits import SEEDS
from benchmark.commands import options
from benchmark.commands.dry_run import check_plan
from benchmark.commands.training import add_training, show_plan, show_trained
from benchmark.library.options import PlanningOptions, TuneOptions

HELP = "search the settings of a method on held-out training images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task by name or file; its [tune] tables are the grids")
    parser.add_argument("method", metavar="METHOD", help="the method by its label (see: list)")
    options.add_repeatable(
        parser,
        "--grid",
        "FIELD=V,V",
        "values to try for a setting of the method or a field of the task, instead of the task's grid, e.g. "
        "weight=0.1,1 or optimizer.lr=0.1,0.05 (repeatable; all combinations are tried)",
    )
    options.add_ingredients(parser)
    options.add_set(parser)
    seeds = "train each trial with seeds 0..N-1, and compare trials by their mean (default: 1)"
    options.add_count(parser, "--seeds", SEEDS, seeds, default=1)
    options.add_results(parser)
    options.add_plugins(parser)
    options.add_device(parser)
    options.add_data_folders(parser)
    add_training(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.tune import plan_trials, train_trials

    check_plan(arguments)
    asked = options.make_options(TuneOptions, arguments)
    if arguments.dry_run:
        return show_plan(plan_trials(asked, options.make_options(PlanningOptions, arguments)), arguments)
    with options.showing(partial(show_trained, options=asked)) as ended:
        ended.outcome = train_trials(asked)
    return ended.code
