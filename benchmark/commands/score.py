"""`score`: bring in predictions that were made elsewhere; get the tables, statistics and figures of trained runs.

A run brings labels and one of logits, log_probabilities, probabilities, or predicted classes with a confidence; or, for
any other task, a loss from 0 to 1 with a confidence. What else it may bring: docs/own-predictions.md.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.commands.options import add_folder, add_list, add_table_options, make_options, showing, terminal_width
from benchmark.library.options import ScoreOptions

if TYPE_CHECKING:
    from benchmark.library.score import Scored

HELP = "bring in predictions of your own: npz, npy, CSV, JSON Lines, Parquet, Feather"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a run each, named METHOD-SEED.npz (or .npy); a table with a line per sample (.csv, .jsonl, .parquet, "
        ".feather); or a list of runs (.toml)",
    )
    columns = "of a table: the columns of fields, e.g. method=model seed=fold labels=y probabilities=p_*"
    add_list(parser, "--columns", "FIELD=COLUMN", columns)
    parser.add_argument("--labels", type=Path, metavar="FILE", help="true classes (.npy or .txt), for files without")
    parser.add_argument(
        "--given",
        choices=["logits", "log_probabilities", "probabilities"],
        help="what an npy file has (default: logits)",
    )
    task = "what the samples are called, or a task of the results folder to stand beside its runs (default: the only "
    task += "task of the folder, else predictions)"
    parser.add_argument("--task", metavar="NAME", help=task)
    parser.add_argument("--title", metavar="TEXT", help="what captions call the task")
    paired = "runs of several methods with one seed are pairs, e.g. of one fold: show paired statistics"
    parser.add_argument("--paired", action=argparse.BooleanOptionalAction, help=paired)
    parser.add_argument("--normalise", action="store_true", help="divide probabilities by their sum")
    parser.add_argument("--allow-ties", action="store_true", help="take float16 probabilities of which many are equal")
    parser.add_argument("--replace", action="store_true", help="replace runs that are there with other content")
    add_table_options(parser)
    add_folder(parser, "--example", "write two small examples with the commands to run on them, and stop")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    if arguments.example is not None:
        from benchmark.library.examples import write_examples

        print(write_examples(arguments.example))
        return 0
    from benchmark.library.score import score_files

    with showing(show) as ended:
        ended.outcome = score_files(make_options(ScoreOptions, arguments))
    return ended.code


def show(scored: "Scored") -> None:
    if scored.tables is not None:
        print(scored.tables.text(terminal_width()))
    print(scored.remark)
