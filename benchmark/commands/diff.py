"""`diff`: show which results moved (changed) between two folders. Exit code 1 if any did: use it to guard a change."""

import argparse

from benchmark.commands.options import add_plugins, make_options
from benchmark.library.options import DiffOptions

HELP = "show which results moved (changed) between two folders (exit code 1 if any did)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="RESULTS_A", help="the results to compare with")
    parser.add_argument("new", metavar="RESULTS_B", help="the results that may have moved")
    part = "RESULTS_B repeats only a part of RESULTS_A: do not report what RESULTS_B lacks"
    parser.add_argument("--part", action="store_true", help=part)
    add_plugins(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.diff import compare_results

    found = compare_results(make_options(DiffOptions, arguments))
    print(found.text())
    return 1 if found.moved else 0
