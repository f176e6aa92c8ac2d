"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse
from functools import partial

from benchmark.base.limits import SEED, SEEDS
from benchmark.commands import options
from benchmark.commands.dry_run import check_plan
from benchmark.commands.training import add_training, show_plan, show_trained
from benchmark.library.options import PlanningOptions, RunOptions

HELP = "train what is missing of a grid and write its tables (the default command)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to run")
    options.add_selection(what)
    seeds = what.add_mutually_exclusive_group()
    options.add_count(seeds, "--seeds", SEEDS, "seeds 0..N-1 (default: the task's own number, usually 5)")
    options.add_list(seeds, "--seed-list", "SEED", "train with exactly these seeds, e.g. 0 3 7", options.whole(SEED))
    options.add_ingredients(what)
    options.add_set(what)
    options.add_plugins(what)
    options.add_device(what)
    options.add_data_folders(what)
    options.add_table_options(parser.add_argument_group("results and tables"))
    add_training(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.run import plan_tasks, train_tasks

    check_plan(arguments)
    asked = options.make_options(RunOptions, arguments)
    if arguments.dry_run:
        return show_plan(plan_tasks(asked, options.make_options(PlanningOptions, arguments)), arguments)
    with options.showing(partial(show_trained, options=asked)) as ended:
        ended.outcome = train_tasks(asked)
    return ended.code
