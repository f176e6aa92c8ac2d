"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.cache import Folders
from benchmark.commands.options import (
    add_data_folders,
    add_selection,
    add_speed,
    add_table_options,
    amount,
    asked_settings,
    folders_of,
    not_negative,
    positive,
    read_tasks,
)
from benchmark.commands.tables import write_tables
from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.names import match_labels
from benchmark.store import Store

if TYPE_CHECKING:
    from benchmark.jobs import Entry, Job, Methods, Suite
    from benchmark.runner import Context

MakeRegistry = Callable[[Sequence[Path]], "Methods"]

HELP = "train what is missing of a grid and write its tables (the default command)"
DEFAULT_TASKS = ("digits", "gaussians")
"""Need no download and finish in minutes."""
FINISHED = ("done", "diverged")


def add_plugins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        type=Path,
        default=[],
        metavar="FILE.py",
        help="a method of your own (repeatable); the file is executed",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seeds", type=positive, metavar="N", help="seeds 0..N-1 (default: the task's own number, usually 5)"
    )
    seeds.add_argument("--seed-list", nargs="+", type=not_negative, metavar="SEED", help="these seeds")
    add_table_options(parser)
    add_data_folders(parser)
    add_speed(parser)
    parser.add_argument(
        "--data-budget",
        type=amount,
        metavar="SIZE",
        help="images up to this size, e.g. 4GB, stay on the device during a job, the rest is streamed; results do not "
        "depend on it (default: half of the device's free memory, shared by its jobs)",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="jobs at a time (default: one per GPU, or one per core); results do not depend on it",
    )
    parser.add_argument(
        "--jobs-per-device",
        type=positive,
        default=1,
        metavar="N",
        help="jobs that share a GPU, where one is too small to fill it (default: 1)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting of the tasks, e.g. optimizer.lr=0.05, method.NAME.FIELD=0.5",
    )
    add_plugins(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the plan: jobs with their state, epochs, disk")
    parser.add_argument("--json", action="store_true", help="with --dry-run: print it as JSON")
    parser.add_argument(
        "--max-steps",
        type=positive,
        default=0,
        metavar="N",
        help="only a few steps of each job, to try a configuration; never tabulated",
    )
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first job that fails")
    add_keeping(parser)
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print only failures")
    volume.add_argument("-v", "--verbose", action="store_true", help="a line per epoch")


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """What is shared between jobs, and what stays when they are done."""
    parser.add_argument("--keep-weights", action="store_true", help="keep the final checkpoint of each job")
    parser.add_argument(
        "--no-shared-warmup",
        action="store_true",
        help="let every job train its own warm-up; the results are the same, it only takes longer",
    )
    parser.add_argument("--keep-trunks", action="store_true", help="keep the snapshots of shared warm-ups")
    parser.add_argument(
        "--keep-features", action="store_true", help="store features too, for the scores that are made of them"
    )


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    if arguments.json and not arguments.dry_run:
        raise UserError("--json belongs to --dry-run; add --dry-run, or leave it out")
    folders = folders_of(arguments)
    methods = make_registry(arguments.plugin)
    tasks = read_tasks(arguments.datasets or DEFAULT_TASKS, arguments, arguments.set)
    suites = [make_suite(task, arguments, methods, folders) for task in tasks]
    store = Store(arguments.results)
    if arguments.dry_run:
        return show_plan(suites, store, as_json=arguments.json, share=not arguments.no_shared_warmup)
    return train(suites, store, arguments, methods, folders)


def show_plan(suites: "list[Suite]", store: Store, *, as_json: bool, share: bool) -> int:
    from benchmark.planning import describe_plan, plan_text

    described = describe_plan(suites, store, share=share)
    print(json.dumps(described, indent=1) if as_json else plan_text(described))
    return 0


def train(
    suites: "list[Suite]", store: Store, arguments: argparse.Namespace, methods: "Methods", folders: Folders
) -> int:
    """Run what is missing, then show where things are and what failed."""
    from benchmark.devices import choose_devices
    from benchmark.runner import Context

    threads = max(suite.task.threads for suite in suites)
    devices = choose_devices(arguments.device, arguments.workers, threads, arguments.jobs_per_device)
    store.check_writable()
    if not arguments.max_steps:
        for suite in suites:
            store.write_manifest(suite.task.name, manifest(suite))
    jobs = [job for suite in suites for job in suite.jobs()]
    awaited = frozenset(awaited_weights(jobs, store))
    context = Context(
        store.root.resolve(),
        folders,
        methods,
        budget=arguments.data_budget,
        jobs_per_device=max(Counter(devices).values()),
        keep_weights=arguments.keep_weights,
        keep_features=arguments.keep_features,
        keep_trunks=arguments.keep_trunks,
        awaited=awaited,
    )
    failures = run_jobs(jobs, context, devices, arguments)
    if arguments.max_steps:
        print(f"tried {arguments.max_steps} step(s) of each job; nothing is tabulated")
    else:
        paths = [path for suite in suites for path in write_tables(manifest(suite), store, show=not arguments.quiet)]
        if not arguments.quiet:
            print(where_to_look(paths, store))
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


def make_suite(task: TaskConfig, arguments: argparse.Namespace, methods: "Methods", folders: Folders) -> "Suite":
    """The grid of one task, everything about it checked before anything runs."""
    from benchmark.jobs import Suite
    from benchmark.planner import label_owners, plan
    from benchmark.planning import check_recipe, find_data
    from benchmark.tables import pick_reference

    seeds = arguments.seed_list or range(arguments.seeds or task.seeds)
    owners = label_owners(methods)
    labels = match_labels(arguments.methods or task.methods, owners)
    default = match_labels([task.reference], owners, f"reference of {task.name}:")[0]
    reference = pick_reference(arguments.reference, default, labels)
    data = find_data(task, folders, required=not arguments.dry_run)
    check_recipe(task, data.facts)
    if data.remark:
        print(f"{task.name}: {data.remark}", file=sys.stderr)
    entries = plan(task, labels, dict.fromkeys(seeds), methods, data.sha256, arguments.max_steps)
    for entry in entries:
        if entry.reason:
            print(f"{task.name} {entry.label}: {entry.reason}; its column stays empty", file=sys.stderr)
    if not any(entry.jobs for entry in entries):
        raise UserError(f"{task.name}: none of {', '.join(labels)} can run here: {entries[0].reason}")
    coverages = tuple(dict.fromkeys(arguments.coverages or task.coverages))
    return Suite(task, entries, coverages, reference, asked_settings(arguments), data.sha256, data.facts, data.remark)


def manifest(suite: "Suite") -> dict[str, Any]:
    return {
        "name": suite.task.name,
        "task": suite.task.name,
        "title": suite.task.title,
        "coverages": list(suite.coverages),
        "reference": suite.reference,
        **suite.settings,
        **({"remark": suite.remark} if suite.remark else {}),
        "entries": [entry_of_manifest(entry) for entry in suite.entries],
    }


def entry_of_manifest(entry: "Entry") -> dict[str, Any]:
    seeds = [job.seed for job in entry.jobs]
    described = {"label": entry.label, "method": entry.method, "job": entry.jobs[0].id if seeds else "", "seeds": seeds}
    optional = {"coverage": entry.coverage, "reason": entry.reason}
    return described | {key: value for key, value in optional.items() if value}


def awaited_weights(jobs: "list[Job]", store: Store) -> "Iterator[Path]":
    """Trainings whose final weights a job that is not done yet takes over."""
    for job in jobs:
        if job.takes_over and store.state(job.folder) not in FINISHED:
            yield from (need.folder for need in job.needs)


def run_jobs(jobs: "list[Job]", context: "Context", devices: list[str], arguments: argparse.Namespace) -> list[str]:
    """Run what is not done yet; returns a line for each job that has no result."""
    from benchmark.launch import Stop, launch
    from benchmark.progress import Watcher
    from benchmark.trunks import remove_trunks, share_warmups

    store = context.store
    states = {job.folder: store.state(job.folder) for job in jobs}
    missing = [job for job in jobs if states[job.folder] not in FINISHED]
    to_run = missing if arguments.no_shared_warmup else share_warmups(missing, store)
    for folder, state in states.items():
        if state in FINISHED and folder not in context.awaited:
            store.tidy(folder)
    if (arguments.keep_weights or arguments.keep_features) and len(missing) < len(jobs):
        print("finished jobs keep what they have: remove a record to train its job again", file=sys.stderr)
    if not arguments.quiet:
        print(f"{len(jobs)} jobs, {len(jobs) - len(missing)} done already", file=sys.stderr)
    watcher = Watcher(to_run, len(devices), arguments.quiet, arguments.verbose, arguments.fail_fast)
    try:
        launch(to_run, context, devices, watcher)
    except Stop:
        pass
    finally:
        watcher.close()
    for folder in context.awaited.difference(awaited_weights(jobs, store)):
        store.tidy(folder)
    if not arguments.keep_trunks:
        remove_trunks(jobs, store)
    earlier = [(job, "diverged in an earlier run") for job in jobs if states[job.folder] == "diverged"]
    failures = [*earlier, *watcher.failures]
    return [failure_line(job, reason, store) for job, reason in failures]


def failure_line(job: "Job", reason: str, store: Store) -> str:
    return f"failed: {job.task.name} {job.label} seed {job.seed}: {reason} (see {store.root / job.folder})"


def where_to_look(paths: list[Path], store: Store) -> str:
    tables = "\n".join(f"  {path}" for path in paths)
    return f"Tables:\n{tables}\nRecords, predictions and learning curves: {store.root}/<task>/<method>/<job>/seed-<n>/"
