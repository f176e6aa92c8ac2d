"""Options and checks that several commands share."""

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmark.cache import Folders
from benchmark.config import TaskConfig, check_coverages
from benchmark.errors import UserError
from benchmark.files import say
from benchmark.limits import SEEDS, Within, read_number
from benchmark.names import match_name
from benchmark.post_hoc import POST_HOC
from benchmark.remote import place
from benchmark.tasks import load_task, load_tasks, task_names
from benchmark.units import bytes_from_text

if TYPE_CHECKING:
    from benchmark.planning import Found

T = TypeVar("T")
PER_CENT = Within(0, 100, "it is a share of all images")
DATA_VARIABLE, CACHE_VARIABLE = "SELBENCH_DATA", "SELBENCH_CACHE"


def refusing(read: Callable[[str], T]) -> Callable[[str], T]:
    """A type of options: what `read` says is wrong, argparse says."""

    def read_option(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read_option


def whole(limit: Within) -> Callable[[str], int]:
    return refusing(lambda text: int(read_number(text, int, limit)))


@refusing
def coverage(text: str) -> float:
    number = float(read_number(text, float, PER_CENT))
    check_coverages([number])
    return number


num_seeds = whole(SEEDS)
amount = refusing(bytes_from_text)


def score_name(text: str) -> str:
    try:
        return match_name(text, POST_HOC, "score")
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", nargs="+", metavar="TASK", help="tasks by name, or paths to task files (.toml)")
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="methods by label or file name, in any case (see: list); 'all' for every one",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=place,
        default=Path("results"),
        metavar="DIR",
        help="where records and tables lie (default: results/): a folder, or a URL such as s3://BUCKET/FOLDER",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--coverages",
        nargs="+",
        type=coverage,
        metavar="C",
        help="rows of the table in per cent (default: the task's own)",
    )
    add_reference(parser)
    add_test_options(parser)
    add_scores(parser)
    add_layout(parser)


def add_layout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transpose", action="store_const", const=True, help="tables with a row for each method")
    parser.add_argument(
        "--ddof",
        type=whole(Within(0, 1, "a sample has one degree of freedom less, and no more")),
        metavar="0|1",
        help="of the standard deviation: 0 for that of the population (default), 1 for that of a sample",
    )
    parser.add_argument(
        "--decimals",
        type=whole(Within(0, 6, "no test set tells more apart")),
        metavar="N",
        help="decimals of percentages, 0 to 6 (default: 2); the best and ranks go by what is printed",
    )


def add_reference(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reference", metavar="METHOD", help="the method the others are compared with (default: the task's own)"
    )


def add_scores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scores",
        nargs="+",
        type=score_name,
        metavar="SCORE",
        help="read every method with these confidence scores too (see: list); nothing is trained for it",
    )


def add_test_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--test",
        choices=["exact", "ranksums", "paired"],
        help="rank-sum test: exact (default), or its normal approximation; or the exact signed-rank test over seeds",
    )
    parser.add_argument(
        "--holm",
        choices=["row", "column", "table"],
        help="correct the markers for many comparisons: over the columns of a row, the rows of a column, or all",
    )
    parser.add_argument(
        "--threshold",
        choices=["sort", "percentile"],
        help="who is kept at a coverage: the ⌈c·n⌉ most confident, ties by expectation (sort, the default), or all at "
        "or above a percentile of float32 scores, as in the public codes; a table then says what is really kept",
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting of the tasks, e.g. optimizer.lr=0.05, method.NAME.FIELD=0.5",
    )


def add_data_folders(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help=f"where data sets lie (default: ${DATA_VARIABLE}, else data/)",
    )
    parser.add_argument(
        "--cache-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help=f"where decoded images are kept (default: ${CACHE_VARIABLE}, else cache/ in the data folder)",
    )


def add_speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda[:n]|xpu|mps", help="where to train")
    switch = argparse.BooleanOptionalAction
    parser.add_argument(
        "--channels-last",
        action=switch,
        help="memory layout of images and filters; on by default on CPU and GPU. This and the next two change the "
        "bits, so they are part of a job's id",
    )
    parser.add_argument(
        "--amp", choices=["off", "bf16", "fp16"], help="half precision inside the network (default: off)"
    )
    parser.add_argument("--compile", action=switch, help="compile the network with torch.compile (default: off)")


def device_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the device suggests where a task says nothing."""
    from benchmark.devices import default_settings, device_kind

    device = "cpu" if getattr(arguments, "ray", None) else arguments.device  # a cluster's machines are their own
    return default_settings(device_kind(device))


def read_standards(names: Iterable[str], arguments: argparse.Namespace) -> dict[str, TaskConfig]:
    """By name the tasks as the suite's file of that name has them, or else as their own file does."""
    defaults = device_settings(arguments)
    files = {Path(name).stem: name for name in names}
    tasks = [load_task(stem if stem in task_names() else name, defaults=defaults) for stem, name in files.items()]
    return {task.name: task for task in tasks}


def read_tasks(names: Iterable[str], arguments: argparse.Namespace, overrides: Iterable[str] = ()) -> list[TaskConfig]:
    """Tasks with what the device suggests, their own settings and what the command line says, in this order."""
    asked = {name: getattr(arguments, name) for name in ("channels_last", "amp", "compile")}
    flags = [f"{name}={value}" for name, value in asked.items() if value is not None]
    return load_tasks(names, [*overrides, *flags], device_settings(arguments))


def folders_of(arguments: argparse.Namespace) -> Folders:
    data = arguments.data_dir or Path(os.environ.get(DATA_VARIABLE) or "data")
    cache = arguments.cache_dir or Path(os.environ.get(CACHE_VARIABLE) or data / "cache")
    return Folders(data.resolve(), cache.resolve())


def asked_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The table settings that the command line names."""
    names = ("test", "holm", "threshold", "scores", "transpose", "ddof", "decimals")
    asked = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in asked.items() if value is not None}


def default_seeds(task: TaskConfig, arguments: argparse.Namespace) -> int:
    """Where none are asked for: the task's own number, but for a trial of a few steps one is enough."""
    return 1 if arguments.max_steps else task.seeds


def tell_of_data(task: TaskConfig, data: "Found", arguments: argparse.Namespace) -> None:
    """What a person should know of a task's images before it runs."""
    for text in (data.remark, "" if arguments.quiet else data.preprocessing):
        if text:
            say(f"{task.name}: {text}")
