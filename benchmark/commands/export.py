"""`export`: write a finished run as a selector: a folder with its network, its score, and a threshold with a guarantee.

The folder can be used by other programs: with onnxruntime and numpy alone (example.py), or with `sb.Selector.load`. It
is written only if the network in it says what the suite has stored of all test images, and its ONNX graph the same.
"""

import argparse
from pathlib import Path

from benchmark.base.limits import SEED
from benchmark.commands.options import (
    add_data_folders,
    add_device,
    add_guarantee,
    add_plugins,
    add_results,
    add_set,
    make_options,
    percentage,
    whole,
)
from benchmark.library.guarantee_options import RISK, ExportOptions

HELP = "write a trained network with its score and a certified threshold as a folder for other programs (ONNX)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task of the results folder, or the path to its file")
    parser.add_argument("method", metavar="METHOD", help="a label of its tables, with @COVERAGE where it has several")
    parser.add_argument("--seed", type=whole(SEED), default=0, metavar="N", help="which of its runs (default: 0)")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where to write; must not be there")
    what = parser.add_argument_group("what to guarantee")
    kinds = what.add_mutually_exclusive_group(required=True)
    risk = "the selective risk to guarantee, in per cent: of what is kept, no more is wrong"
    kinds.add_argument("--risk", type=percentage(RISK), metavar="R", help=risk)
    kinds.add_argument("--coverage", type=percentage(RISK), metavar="C", help="the coverage to keep, in per cent")
    what.add_argument("--score", metavar="SCORE", help="the confidence score (default: the method's own; see: list)")
    add_guarantee(what)
    run_group = parser.add_argument_group("the run")
    add_results(run_group)
    add_set(run_group)
    add_plugins(run_group)
    add_device(run_group, "where to compare with the suite's prediction")
    add_data_folders(run_group)
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.selector import export_selector

    print(export_selector(make_options(ExportOptions, arguments)))
    return 0
