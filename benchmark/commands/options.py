"""Options and checks that several commands share."""

import argparse
import os
from pathlib import Path

DATA_VARIABLE = "SELBENCH_DATA"


def positive(text: str) -> int:
    return whole(text, 1)


def not_negative(text: str) -> int:
    return whole(text, 0)


def whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got '{text}'")
    return number


def coverage(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (0 < number <= 100 and (2 * number).is_integer()):
        raise argparse.ArgumentTypeError(f"expected per cent above 0 and up to 100 in steps of 0.5, got '{text}'")
    return number


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", nargs="+", metavar="TASK", help="tasks by name, or paths to task files (.toml)")
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="methods by label or file name, in any case (see: list); 'all' for every one",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where records and tables lie (default: results/)",
    )
    parser.add_argument(
        "--coverages",
        nargs="+",
        type=coverage,
        metavar="C",
        help="rows of the table in per cent (default: the task's own)",
    )
    parser.add_argument(
        "--reference", metavar="METHOD", help="the method the markers compare with (default: the task's own)"
    )
    parser.add_argument(
        "--test", choices=["exact", "ranksums"], help="rank-sum test: exact (default), or its normal approximation"
    )


def default_data_dir() -> Path:
    return Path(os.environ.get(DATA_VARIABLE, "data"))
