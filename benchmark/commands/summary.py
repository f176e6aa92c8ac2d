"""`summary`: one table of several tasks: what each method changes against the baseline of the same seeds, and its cost.

Rows are methods and recipes, columns are tasks. A cell is the mean change in per cent with its interval over seeds,
marked where it is significant. A second table has the seeds that it would take to show the other changes.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from benchmark.commands.options import (
    add_ingredients,
    add_list,
    add_methods,
    add_out,
    add_plugins,
    add_results,
    add_scores,
    make_options,
    showing,
    terminal_width,
)
from benchmark.library.folder_options import SummaryOptions

if TYPE_CHECKING:
    from benchmark.library.summary import SummaryTables

HELP = "one table of several tasks: changes against the baseline, with intervals and costs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list(
        parser, "--tasks", "TASK", "columns in this order, each a task or TASK=TITLE (default: all but evaluation sets)"
    )
    add_methods(parser)
    add_ingredients(parser)
    add_list(parser, "--rows", "ROW", "show only these rows, in this order: methods with their score, as METHOD+SR")
    parser.add_argument(
        "--measure", default=SummaryOptions.measure, metavar="NAME", help="what to compare, as runs.csv names it"
    )
    parser.add_argument(
        "--test",
        choices=["exact", "paired"],
        default=SummaryOptions.test,
        help="test behind the markers: the exact rank-sum test (exact, default), or the exact signed-rank test over "
        "pairs of runs with the same seed (paired)",
    )
    parser.add_argument("--short", action="store_true", help="a narrow table with few words, at most 8 columns")
    parser.add_argument("--name", default=SummaryOptions.name, help="name of the files (default: summary)")
    add_results(parser)
    add_scores(parser)
    add_plugins(parser)
    add_out(parser, "tables and figure")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.summary import summarise

    with showing(show) as ended:
        ended.outcome = summarise(make_options(SummaryOptions, arguments))
    return ended.code


def show(tables: "SummaryTables") -> None:
    """Print the tables, and to the other stream what was written."""
    print(tables.text(terminal_width()), end="", flush=True)
    print(tables.remark, file=sys.stderr)
