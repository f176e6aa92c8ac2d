"""The options of commands that train, and what such a command prints."""

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from benchmark.base.files import say
from benchmark.base.limits import SEED, SEEDS
from benchmark.base.signals import EXIT_INTERRUPTED
from benchmark.base.units import bytes_from_text
from benchmark.commands.dry_run import add_plan, check_plan
from benchmark.commands.options import (
    Arguments,
    add_count,
    add_data_folders,
    add_device,
    add_list,
    add_plugins,
    add_set,
    add_speed,
    add_table_options,
    make_options,
    refusing,
    showing,
    terminal_width,
    whole,
)
from benchmark.library.options import (
    GPUS_PER_JOB,
    JOBS_PER_DEVICE,
    MAX_STEPS,
    RETRIES,
    WORKERS,
    PlanningOptions,
    RunOptions,
    TrainingOptions,
)

if TYPE_CHECKING:
    from benchmark.forecast.dry_run import Plan
    from benchmark.library.training import Trained


def add_seeds(what: Arguments, default: str = "the task's own number, usually 5") -> None:
    seeds = what.add_mutually_exclusive_group()
    add_count(seeds, "--seeds", SEEDS, f"seeds 0..N-1 (default: {default})")
    add_list(seeds, "--seed-list", "SEED", "exactly these seeds, e.g. 0 3 7", whole(SEED))


def add_grid(parser: argparse.ArgumentParser, what: Arguments) -> None:
    """Add the options of a grid of tasks, methods and seeds, beyond tasks and methods."""
    add_seeds(what)
    add_set(what)
    add_plugins(what)
    add_device(what)
    add_data_folders(what)
    add_table_options(parser.add_argument_group("results and tables"))
    add_training(parser)


def run_grid(arguments: argparse.Namespace) -> int:
    """Train a grid, or plan it; return the exit code."""
    from benchmark.library.run import plan_tasks, train_tasks

    return run_or_plan(arguments, train_tasks, plan_tasks)


def run_or_plan(
    arguments: argparse.Namespace,
    train: "Callable[[RunOptions], Trained]",
    plan: "Callable[[RunOptions, PlanningOptions], Plan]",
) -> int:
    """Do what the options of a grid ask for, or show its plan; return the exit code."""
    check_plan(arguments)
    asked = make_options(RunOptions, arguments)
    if arguments.dry_run:
        return show_plan(plan(asked, make_options(PlanningOptions, arguments)), arguments)
    with showing(partial(show_trained, options=asked)) as ended:
        ended.outcome = train(asked)
    return ended.code


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options that all commands that train have, in groups."""
    add_speed(parser)
    add_plan(parser)
    placing = parser.add_argument_group("where jobs run")
    add_placing(placing)
    add_ranks(placing)
    add_keeping(parser.add_argument_group("what is kept"))
    group = parser.add_argument_group("how the run goes")
    add_count(
        group,
        "--max-steps",
        MAX_STEPS,
        "try a configuration: only N steps and N evaluation batches of each job, and one seed unless you name some; "
        "the results enter no table",
        default=0,
    )
    add_going(group)


def add_going(group: Arguments) -> None:
    """Add the options of how a run of jobs goes, whatever they do."""
    again = "how many times to restart a job after its process died, e.g. for lack of memory (default: 1)"
    add_count(group, "--retries", RETRIES, again, default=1)
    group.add_argument(
        "--redo-stale",
        action="store_true",
        help="run finished jobs again if another version of the code or of torch made them; without this option their "
        "results are used, and the tables say so",
    )
    group.add_argument("--fail-fast", action="store_true", help="stop at the first job that fails")
    volume = group.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print only failures")
    volume.add_argument("-v", "--verbose", action="store_true", help="a line per epoch")


def add_placing(parser: Arguments) -> None:
    """Add the options of where jobs run, and how many at a time."""
    parser.add_argument(
        "--data-budget",
        type=refusing(bytes_from_text),
        metavar="SIZE",
        help="images up to this size, e.g. 4GB, stay on the device during a job, the rest is streamed; results do not "
        "depend on it (default: half of the device's free memory, shared by its jobs)",
    )
    add_count(
        parser,
        "--workers",
        WORKERS,
        "how many jobs run at a time, each in its own process (default: one per GPU, or one per core); 0 runs them "
        "one after the other in this process, for a debugger; results do not depend on it",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="run the jobs on Ray. Without ADDRESS: start Ray on this machine. With ADDRESS: on that cluster (auto: "
        "this machine's cluster; ray://HOST:10001: another one); results do not depend on it (see docs/cluster.md)",
    )
    share = "jobs that share a GPU, where one is too small to fill it (default: 1)"
    add_count(parser, "--jobs-per-device", JOBS_PER_DEVICE, share, default=1)


def add_ranks(parser: Arguments) -> None:
    add_count(
        parser,
        "--gpus-per-job",
        GPUS_PER_JOB,
        "train each job on N GPUs (on the CPU: in N processes); batch and learning rate stay those of the task "
        "(default: 1)",
        default=1,
    )


def add_keeping(parser: Arguments) -> None:
    """Add the options of what jobs share, and of what stays when they are done."""
    parser.add_argument("--keep-weights", action="store_true", help="keep the final checkpoint of each job")
    parser.add_argument(
        "--no-shared-warmup",
        dest="share_warmups",
        action="store_false",
        help="let every job train its own warm-up; the results are the same, it only takes longer",
    )
    parser.add_argument("--keep-trunks", action="store_true", help="keep the snapshots of shared warm-ups")
    parser.add_argument(
        "--keep-features", action="store_true", help="store features too, for the scores that are made of them"
    )
    parser.add_argument(
        "--track-bound",
        action="store_true",
        help="note intra-class variance and generalisation bound after each epoch in history.csv (constants: "
        "--set bound.FIELD=VALUE); costs a pass over all images, changes no result",
    )
    curves = "write learning curves for TensorBoard into the folder tensorboard/ of the results; changes no result"
    parser.add_argument("--tensorboard", action="store_true", help=curves)


def show_plan(plan: "Plan", arguments: argparse.Namespace) -> int:
    """Print a plan; return the exit code."""
    print(json.dumps(plan.described, indent=1) if arguments.json else plan.text())
    return EXIT_INTERRUPTED if plan.cut_short else 0


def show_trained(trained: "Trained", options: TrainingOptions) -> None:
    """Print the tables of what is trained, and name the jobs without a result."""
    if options.max_steps or not options.quiet:
        print(f"{trained.text(terminal_width())}{trained.remark}", flush=True)
    for line in trained.failures:
        say(line)
