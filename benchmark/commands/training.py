"""The options of commands that train, and what such a command does once its suites are made."""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.base.files import say
from benchmark.base.limits import Within
from benchmark.base.signals import EXIT_INTERRUPTED
from benchmark.base.units import bytes_from_text, counted
from benchmark.commands.dry_run import add_plan, needs_data, simulated_devices
from benchmark.commands.options import Arguments, add_count, add_speed, folders_of, refusing, speed_settings
from benchmark.jobs.suite import Suite, in_line
from benchmark.paper.assemble import MAKERS
from benchmark.report.update import make_parts, try_report
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.render.write import write_paper_table, write_tables

if TYPE_CHECKING:
    from benchmark.jobs.job import Methods
    from benchmark.launch.suites import SuiteMaker

WRITERS = {"task": write_tables, "paper": write_paper_table}


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options that all commands that train have, in groups."""
    add_speed(parser)
    add_plan(parser)
    add_placing(parser.add_argument_group("where jobs run"))
    add_keeping(parser.add_argument_group("what is kept"))
    group = parser.add_argument_group("how the run goes")
    again = "how many times to restart a job after its process died, e.g. for lack of memory (default: 1)"
    add_count(group, "--retries", Within(0, 100, "a job that dies more often will not finish"), again, default=1)
    group.add_argument(
        "--redo-stale",
        action="store_true",
        help="run finished jobs again if another version of the code or of torch made them; without this option their "
        "results are used, and the tables say so",
    )
    add_count(
        group,
        "--max-steps",
        Within(1, 10**6, "it is for a try; leave it out to train"),
        "try a configuration: only N steps and N evaluation batches of each job, and one seed unless you name some; "
        "the results enter no table",
        default=0,
    )
    group.add_argument("--fail-fast", action="store_true", help="stop at the first job that fails")
    volume = group.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print only failures")
    volume.add_argument("-v", "--verbose", action="store_true", help="a line per epoch")


def add_placing(parser: Arguments) -> None:
    """Add the options of where jobs run, how many at a time, and how many on a GPU."""
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
        Within(0, 1024, "no machine can run more processes"),
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
    add_count(parser, "--jobs-per-device", Within(1, 64, "no GPU can run more processes"), share, default=1)
    add_count(
        parser,
        "--gpus-per-job",
        Within(1, 64, "no machine has more GPUs"),
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


def suite_maker(arguments: argparse.Namespace, methods: "Methods", seeds: Sequence[int]) -> "SuiteMaker":
    """Return what makes the suites of a command, from its options."""
    from benchmark.launch.suites import SuiteMaker

    return SuiteMaker(
        methods,
        folders_of(arguments),
        "cpu" if arguments.ray else arguments.device,  # a cluster's machines are their own
        tuple(getattr(arguments, "set", ())),
        speed_settings(arguments),
        tuple(seeds),
        arguments.max_steps,
        lambda task: needs_data(task.name, arguments),
        arguments.quiet,
    )


def plan_or_train(
    suites: Sequence[Suite],
    store: Store,
    arguments: argparse.Namespace,
    methods: "Methods",
    *,
    noting: AbstractContextManager[Any],
    finish: Callable[[], None],
) -> int:
    """Show the plan of some suites, or train what is missing of them; return the exit code.

    `noting` writes down what is asked for, before and perhaps after the training. `finish` shows the results. Neither
    is called where only a few steps are tried.
    """
    from benchmark.forecast.long_plans import long_plan_warnings
    from benchmark.launch.grid import Grid, GridOptions, check_writable, devices_for

    if arguments.dry_run:
        return show_plan(suites, store, arguments, methods)
    options = GridOptions(**{field.name: getattr(arguments, field.name) for field in fields(GridOptions)})
    devices = devices_for(suites, options, methods)
    check_writable(store, options)
    jobs = in_line(job for suite in suites for job in suite.jobs())
    grid = Grid(jobs, store, folders_of(arguments), methods, devices, options)
    is_try = bool(options.max_steps)
    with nullcontext() if is_try else noting:
        grid.prepare()
        if devices and not (is_try or options.quiet):
            for line in long_plan_warnings(suites, store, devices, share=options.share_warmups):
                say(line)
        failures = grid.run()
    if is_try:
        print(f"tried {counted(options.max_steps, 'step')} of each job; nothing is tabulated")
    else:
        finish()
    for line in failures:
        say(line)
    return 1 if failures else 0


def show_plan(suites: Sequence[Suite], store: Store, arguments: argparse.Namespace, methods: "Methods") -> int:
    """Print the plan of some suites; return the exit code."""
    from benchmark.forecast.dry_run import PlanOptions, make_plan

    options = PlanOptions(
        arguments.device,
        arguments.probe,
        dict(arguments.step_seconds),
        simulated_devices(arguments) if arguments.cluster else (),
        arguments.jobs_per_device,
        arguments.share_warmups,
    )
    plan = make_plan(suites, store, options, methods, folders_of(arguments))
    print(json.dumps(plan.described, indent=1) if arguments.json else plan.text())
    return EXIT_INTERRUPTED if plan.cut_short else 0


def write_results(kind: str, manifests: Sequence[Manifest], store: Store, *, show: bool) -> tuple[list[Path], str]:
    """Write the tables of some manifests, and the page. Return the files of the tables, and a line about the page."""
    shown = [MAKERS[kind](manifest, store) for manifest in manifests]
    paths = [path for each in shown for path in WRITERS[kind](each, store.root, show=show)]
    return paths, try_report(store, MAKERS, make_parts(kind, manifests, shown, store))
