"""Options that several commands share, and the way from parsed arguments to an options value."""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from benchmark.base.errors import JobsFailed, Unreachable, UserError
from benchmark.base.limits import Within, read_number
from benchmark.library.guarantee_options import CONFIDENCE, SHARE, GuaranteeOptions
from benchmark.library.options import (
    CACHE_VARIABLE,
    DATA_VARIABLE,
    DDOF,
    DECIMALS,
    Options,
    read_coverage,
)

T = TypeVar("T")
Asked = TypeVar("Asked", bound=Options)
Arguments = argparse.ArgumentParser | argparse._ArgumentGroup
"""Where options are added: a command, or a group of its options."""


def make_options(kind: type[Asked], arguments: argparse.Namespace) -> Asked:
    """Return the options value of a command: each field is the argument of the same name."""
    return kind(**{field.name: getattr(arguments, field.name) for field in fields(kind)})  # type: ignore[arg-type]


def terminal_width() -> int | None:
    """Return the width of the terminal; None where the output goes to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@dataclass
class Ended:
    """How a call of the library ended: what it returned, and the exit code of the command."""

    outcome: Any = None
    code: int = 0


@contextmanager
def showing(show: Callable[[Any], None]) -> Iterator[Ended]:
    """Show the outcome of the block, also where some jobs failed or the results could not be copied to their URL."""
    ended = Ended()
    try:
        yield ended
    except JobsFailed as error:
        ended.outcome, ended.code = error.outcome, 1
    except Unreachable as error:
        ended.outcome = error.outcome
        raise
    finally:
        if ended.outcome is not None:
            show(ended.outcome)


def refusing(read: Callable[[str], T]) -> Callable[[str], T]:
    """Make a function that reads an option's text into a type for argparse, with the same error text."""

    def read_option(text: str) -> T:
        try:
            return read(text)
        except (UserError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read_option


def whole(limit: Within) -> Callable[[str], int]:
    """Return a type for argparse: whole numbers within a limit."""
    return refusing(lambda text: int(read_number(text, int, limit)))


coverage = refusing(read_coverage)
"""A type for argparse: a coverage in per cent."""


def percentage(limit: Within) -> Callable[[str], float]:
    """Return a type for argparse: a number in per cent, with or without its sign."""
    return refusing(lambda text: float(read_number(text.removesuffix("%"), float, limit)))


def add_guarantee(parser: Arguments) -> None:
    """Add the options on what a guarantee holds for, and on which images it stands."""
    parser.add_argument(
        "--confidence",
        type=percentage(CONFIDENCE),
        default=GuaranteeOptions.confidence,
        metavar="P",
        help="the guarantee holds with probability P %% over the held-out images (default: 95)",
    )
    parser.add_argument(
        "--bound",
        choices=get_args(get_type_hints(GuaranteeOptions)["bound"]),
        default=GuaranteeOptions.bound,
        help="fixed-sequence (default): exact binomial tests of thresholds from strict to lax; sgr: a binary search "
        "with a share of the error probability for each look; hoeffding-bentkus: for losses between 0 and 1, too",
    )
    parser.add_argument(
        "--from-test",
        type=percentage(SHARE),
        metavar="P%",
        help="certify with this share of the test images, drawn by the seed, and test on the rest (default: certify "
        "with the validation images)",
    )


def add_count(parser: Arguments, flag: str, limit: Within, text: str, default: int | None = None) -> None:
    """Add an option with one whole number."""
    parser.add_argument(flag, type=whole(limit), default=default, metavar="N", help=text)


def add_folder(parser: Arguments, flag: str, text: str) -> None:
    """Add an option with a path to a folder."""
    parser.add_argument(flag, type=Path, metavar="DIR", help=text)


def add_list(parser: Arguments, flag: str, metavar: str, text: str, kind: Callable[[str], Any] = str) -> None:
    """Add an option with one value or more, None where it is not given."""
    parser.add_argument(flag, nargs="+", type=kind, metavar=metavar, help=text)


def add_repeatable(parser: Arguments, flag: str, metavar: str, text: str, kind: Callable[[str], Any] = str) -> None:
    """Add an option that may be given several times, each time with one value."""
    parser.add_argument(flag, action="append", type=kind, default=[], metavar=metavar, help=text)


def add_selection(parser: Arguments) -> None:
    add_list(parser, "--datasets", "TASK", "tasks by name, or paths to task files (.toml)")
    add_methods(parser)
    add_ingredients(parser)


def add_methods(parser: Arguments) -> None:
    text = "methods by label or file name, in upper or lower case (see: list); 'all' for every one"
    add_list(parser, "--methods", "METHOD", text)


def add_results(parser: Arguments) -> None:
    parser.add_argument(
        "--results",
        default="results",
        metavar="DIR",
        help="where records and tables lie (default: results/): a folder, or a URL such as s3://BUCKET/FOLDER",
    )


def add_table_options(parser: Arguments) -> None:
    add_results(parser)
    add_list(parser, "--coverages", "C", "rows of the table in per cent (default: the task's own)", coverage)
    add_reference(parser)
    add_test_options(parser)
    add_scores(parser)
    parser.add_argument("--transpose", action="store_const", const=True, help="tables with a row for each method")
    parser.add_argument(
        "--ddof",
        type=whole(DDOF),
        metavar="0|1",
        help="standard deviation to print: 0 divides by n (population, default), 1 divides by n − 1 (sample)",
    )
    intervals = "resample the test images: intervals over them, in the table of single runs or else in the statistics"
    parser.add_argument("--intervals", action=argparse.BooleanOptionalAction, help=intervals)
    decimals = "decimals of percentages, 0 to 6 (default: 2); the printed numbers decide what is best, and the ranks"
    add_count(parser, "--decimals", DECIMALS, decimals)


def add_reference(parser: Arguments) -> None:
    parser.add_argument(
        "--reference", metavar="METHOD", help="the method the others are compared with (default: the task's own)"
    )


def add_scores(parser: Arguments) -> None:
    scores = (
        "also rank the images of every method by these confidence scores (see: list); this needs no training. "
        "all: every score that a run can have, in a table of its own among the statistics"
    )
    add_list(parser, "--scores", "SCORE", scores)


def add_test_options(parser: Arguments) -> None:
    parser.add_argument(
        "--test",
        choices=["exact", "ranksums", "paired"],
        help="test behind the markers: the exact rank-sum test (exact, default), its normal approximation (ranksums), "
        "or the exact signed-rank test over pairs of runs with the same seed (paired)",
    )
    parser.add_argument(
        "--holm",
        choices=["row", "column", "table"],
        help="correct the markers for many comparisons: over the columns of a row, the rows of a column, or all",
    )
    parser.add_argument(
        "--threshold",
        choices=["sort", "percentile"],
        help="which images are kept at a coverage c. sort (default): the ⌈c·n⌉ most confident; ties count with their "
        "mean error. percentile: all images at or above a percentile of the float32 scores, as in the public codes; a "
        "further table then shows the coverage that is really kept",
    )


def add_set(parser: Arguments, key: str = "KEY", example: str = "optimizer.lr=0.05, method.NAME.FIELD=0.5") -> None:
    add_repeatable(parser, "--set", f"{key}=VALUE", f"change a setting, e.g. {example} (repeatable)")


def add_ingredients(parser: Arguments) -> None:
    text = "ingredients that go with every method, e.g. swa sam (see: list); labels name them, as in SR+SAM+SWA"
    parser.add_argument("--with", dest="ingredients", nargs="+", default=(), metavar="NAME", help=text)


def add_evaluate(parser: Arguments) -> None:
    text = (
        "try the networks on evaluation sets: names of those in the task's file, or corruptions, shift=IMAGES, "
        "new=IMAGES, humans=FILE, groups=COLUMNS, where IMAGES is a task, a folder or an npz file (default: all of the "
        "task's file; none: none; docs/beyond-the-test-set.md)"
    )
    add_list(parser, "--evaluate", "SET", text)


def add_plugins(parser: Arguments) -> None:
    text = "a file of your own with a method, scores, networks or data sources (repeatable); the file is executed"
    add_repeatable(parser, "--plugin", "FILE.py", text, Path)


def add_out(parser: Arguments, what: str) -> None:
    unless = "the results folder, unless it is under version control"
    add_folder(parser, "--out", f"where to write {what} (default: {unless})")


def add_data_folder(parser: Arguments) -> None:
    add_folder(parser, "--data-dir", f"where data sets lie (default: ${DATA_VARIABLE}, else data/)")


def add_data_folders(parser: Arguments) -> None:
    cache = f"${CACHE_VARIABLE}, else cache/ in the data folder"
    add_data_folder(parser)
    add_folder(parser, "--cache-dir", f"where decoded images are kept (default: {cache})")


def add_device(parser: Arguments, use: str = "where to train") -> None:
    choices = "auto|cpu|cuda[:n]|xpu|mps"
    parser.add_argument("--device", default="auto", metavar=choices, help=f"{use} (default: auto)")


def add_speed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "speed", "The same as --set NAME=VALUE. They change the numbers a little, so they are part of a job's id."
    )
    switch = argparse.BooleanOptionalAction
    group.add_argument(
        "--channels-last", action=switch, help="memory layout of images and filters (default: on, for CPU and GPU)"
    )
    group.add_argument(
        "--amp", choices=["off", "bf16", "fp16"], help="half precision inside the network (default: off)"
    )
    group.add_argument("--compile", action=switch, help="compile the network with torch.compile (default: off)")
