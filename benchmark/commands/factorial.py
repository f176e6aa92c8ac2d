"""`factorial`: cross methods with ingredients, train what is missing, and write what each ingredient does."""

import argparse

from benchmark.commands import options
from benchmark.commands.training import add_grid, run_grid

HELP = "cross methods with ingredients: main effects and interactions, paired by seed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to cross")
    what.add_argument("datasets", nargs="+", metavar="TASK", help="tasks by name, or paths to task files (.toml)")
    options.add_methods(what)
    what.add_argument(
        "--with",
        dest="factors",
        nargs="+",
        required=True,
        metavar="LEVELS",
        help='a factor each: the levels of an ingredient, e.g. "swa|none" "sam|none" (see: list)',
    )
    options.add_evaluate(what)
    add_grid(parser, what)
    parser.set_defaults(ingredients=(), transpose=True)


def run(arguments: argparse.Namespace) -> int:
    return run_grid(arguments)
