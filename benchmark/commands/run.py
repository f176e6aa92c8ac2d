"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse

from benchmark.commands import options
from benchmark.commands.training import add_grid, run_grid

HELP = "train what is missing of a grid and write its tables (the default command)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to run")
    options.add_selection(what)
    options.add_evaluate(what)
    add_grid(parser, what)
    parser.set_defaults(factors=())


def run(arguments: argparse.Namespace) -> int:
    return run_grid(arguments)
