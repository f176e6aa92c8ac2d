"""`figures`: draw the figures of a results folder from its records, as PNG and PDF. Needs no torch."""

import argparse

from benchmark.commands.options import (
    add_out,
    add_plugins,
    add_reference,
    add_results,
    add_scores,
    add_selection,
    make_options,
)
from benchmark.library.options import FiguresOptions

HELP = "draw the figures of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_results(parser)
    add_reference(parser)
    add_scores(parser)
    add_plugins(parser)
    add_out(parser, "figures")
    parser.add_argument(
        "--plain", action="store_true", help="print the sentences that stand below the figures instead of drawing them"
    )


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.figures import draw_figures

    for drawn in draw_figures(make_options(FiguresOptions, arguments)):
        print(drawn.text(), flush=True)
    return 0
