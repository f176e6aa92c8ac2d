"""`measure`: bring the measures of all finished runs up to date, from their stored predictions. It trains nothing."""

import argparse

from benchmark.commands.options import add_plugins, add_results, add_scores, make_options
from benchmark.library.options import MeasureOptions

HELP = "compute missing or outdated measures from stored predictions (no training)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    add_scores(parser)
    add_plugins(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.measure import measure_results

    print(measure_results(make_options(MeasureOptions, arguments)).text())
    return 0
