"""`certify`: find thresholds of finished runs that keep the risk below a bound, with a guarantee from held-out images.

Of each method, score and seed it finds the laxest threshold whose selective risk is at most the wanted one, with
probability 95 % over the held-out images, and shows what the threshold keeps of these and of the test images. It trains
nothing. Held-out are the validation images, if nothing else has used them, or a share of the test images.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from benchmark.commands.options import (
    add_guarantee,
    add_ingredients,
    add_list,
    add_methods,
    add_out,
    add_plugins,
    add_reference,
    add_results,
    add_scores,
    make_options,
    percentage,
    terminal_width,
)
from benchmark.library.guarantee_options import RISK, CertifyOptions

if TYPE_CHECKING:
    from benchmark.library.certify import Guarantees

HELP = "find thresholds with a guarantee on the risk or the coverage (no training)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks of the results folder (default: all)")
    add_methods(parser)
    add_ingredients(parser)
    what = parser.add_argument_group("what to guarantee")
    risks = "the selective risks to guarantee, in per cent (default, without --coverage: 1 2 5 10)"
    add_list(what, "--risk", "R", risks, percentage(RISK))
    coverages = "coverages to keep, in per cent: thresholds with the interval of the coverage to expect"
    add_list(what, "--coverage", "C", coverages, percentage(RISK))
    what.add_argument(
        "--by",
        metavar="class|COLUMN",
        help="a threshold for each predicted class, or for each group of a column that the predictions have; the "
        "guarantees hold for all of them together",
    )
    add_guarantee(what)
    shown = parser.add_argument_group("results and tables")
    add_results(shown)
    add_reference(shown)
    shown.add_argument("--test", choices=["exact", "ranksums", "paired"], help="test behind the markers (see: tables)")
    shown.add_argument("--holm", choices=["row", "column", "table"], help="correct the markers (see: tables)")
    add_scores(shown)
    add_plugins(shown)
    add_out(shown, "tables and figure")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.certify import certify_runs

    show(certify_runs(make_options(CertifyOptions, arguments)))
    return 0


def show(guarantees: "Guarantees") -> None:
    """Print the tables, and to the other stream what was written."""
    print(guarantees.text(terminal_width()), end="", flush=True)
    print(guarantees.remark, file=sys.stderr)
