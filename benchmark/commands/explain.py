"""`explain`: the seeds, values, jobs and commit behind a cell of a table, and the test behind its marker."""

import argparse

from benchmark.commands.options import add_plugins, add_results, add_test_options, make_options
from benchmark.library.options import ExplainOptions

HELP = "where a cell of a table comes from"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task of the results folder, or paper/NAME for a paper's table")
    parser.add_argument("method", metavar="METHOD", help="a column of its table: a label, or label+score")
    parser.add_argument(
        "row", metavar="ROW", help="a coverage in per cent, e.g. 90; of an evaluation set also a row, e.g. 'severity 3'"
    )
    add_results(parser)
    parser.add_argument("--reference", metavar="METHOD", help="the method to compare with (default: the table's own)")
    add_test_options(parser)
    add_plugins(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.explain import explain_cell

    print(explain_cell(make_options(ExplainOptions, arguments)))
    return 0
