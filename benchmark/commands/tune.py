"""`tune`: try the grid of a method on held-out training images, keep every trial, write the winner as a task file."""

import argparse
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from benchmark import render
from benchmark.commands.options import (
    add_data_folders,
    add_results,
    add_speed,
    folders_of,
    positive,
    read_tasks,
    tell_of_data,
)
from benchmark.commands.plan import add_plan, check_plan, needs_data, show_plan
from benchmark.commands.run import MakeRegistry, add_plugins
from benchmark.commands.tables import write_files
from benchmark.commands.training import add_training, check_writable, devices_for, report_failures, run_suites
from benchmark.errors import UserError
from benchmark.files import Damaged, write_atomically
from benchmark.names import match_name
from benchmark.store import Store
from benchmark.tasks import task_path

if TYPE_CHECKING:
    from benchmark.jobs import Methods, Suite

HELP = "search the settings of a method on held-out training images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task by name or file; its [tune] tables are the grids")
    parser.add_argument("method", metavar="METHOD", help="the method by its label (see: list)")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=V,V",
        help="values to try instead of the task's grid (repeatable; all combinations)",
    )
    seeds = "seeds 0..N-1 of each trial, whose mean counts (default: 1)"
    parser.add_argument("--seeds", type=positive, default=1, metavar="N", help=seeds)
    add_results(parser)
    add_plugins(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    check_plan(arguments)
    methods, folders, store = make_registry(arguments.plugin), folders_of(arguments), Store(arguments.results)
    suite, label = make_trials(arguments, methods)
    if arguments.dry_run:
        return show_plan([suite], store, arguments, methods, folders)
    devices = devices_for([suite], arguments, methods)
    check_writable(store, arguments)
    if arguments.max_steps:
        return report_failures(run_suites([suite], store, arguments, methods, folders, devices))
    keep_trials(suite, label, arguments, methods, store)
    try:
        failures = run_suites([suite], store, arguments, methods, folders, devices)
    finally:
        keep_trials(suite, label, arguments, methods, store)
    if not arguments.quiet:
        show_trials(suite, label, arguments, store)
    return report_failures(failures)


def make_trials(arguments: argparse.Namespace, methods: "Methods") -> "tuple[Suite, str]":
    """The grid as a suite on the task with a part of its training images held out."""
    from benchmark.jobs import Suite
    from benchmark.planner import Planner, check_settings, label_owners
    from benchmark.planning import check_recipe, find_data
    from benchmark.tuning import find_grid, trial_entries

    owners = label_owners(methods)
    label = match_name(arguments.method, owners, "method")
    (whole,) = read_tasks([arguments.task], arguments)
    held_out = [f"data.val={whole.tune_val}", "data.official_val=false", "data.val_images=0"]
    (task,) = read_tasks([arguments.task], arguments, held_out)
    check_settings(task, methods, owners)
    trials = find_grid(task, label, owners[label], arguments.grid)
    required = needs_data(task, arguments)
    remark = find_data(whole, folders_of(arguments), required=required).remark
    data = replace(find_data(task, folders_of(arguments), required=required), remark=remark)
    check_recipe(task, data.facts)
    tell_of_data(task, data, arguments)
    planner = Planner(task, methods, data.sha256, arguments.max_steps)
    entries = trial_entries(planner, methods, label, trials, range(arguments.seeds))
    return Suite(
        task, entries, task.coverages, task.reference, {}, data.sha256, data.facts, remark, data_state=data.state
    ), label


def keep_trials(suite: "Suite", label: str, arguments: argparse.Namespace, methods: "Methods", store: Store) -> None:
    """Into the ledger go all trials, also before they are run; the winner goes into the task file."""
    from benchmark.tuning import add_to_ledger, find_grid, ledger_sheets, read_trials, tuned_task

    task, owner, folder = suite.task, suite.entries[0].method, store.root / "tune"
    names = find_grid(task, label, owner, arguments.grid)[0]
    trials = read_trials(suite.entries, names, methods.get(owner), split_of(suite), store)
    fixed = {"task": task.name, "title": task.title, "extends": extended(arguments.task)}
    folder.mkdir(exist_ok=True)
    with FileLock(folder / f"{task.name}.lock"):
        before = read_ledger(task.name, store) or fixed
        if before["extends"] != fixed["extends"]:
            raise UserError(f"'{folder / task.name}.json' is the ledger of {before['extends']}; use another --results")
        ledger = add_to_ledger(before | fixed, label, trials, range(arguments.seeds))
        store.replace_json(ledger_place(task.name), ledger)
        write_files(folder, task.name, ledger_sheets(ledger))
        write_atomically(folder / f"{task.name}-tuned.toml", tuned_task(ledger).encode())


def ledger_place(task: str) -> Path:
    return Path("tune", f"{task}.json")


def read_ledger(task: str, store: Store) -> dict[str, Any] | None:
    """None where there is none; a damaged one is moved aside when the new one is written."""
    with suppress(Damaged):
        return store.read_json(ledger_place(task))
    return None


def show_trials(suite: "Suite", label: str, arguments: argparse.Namespace, store: Store) -> None:
    from benchmark.tuning import Trial, trials_sheet

    path = store.root / "tune" / suite.task.name
    entry = (read_ledger(suite.task.name, store) or {})["methods"][label]
    print(render.markdown([trials_sheet(label, [Trial(**trial) for trial in entry["trials"]], entry["chosen"])]))
    plugins = "".join(f" --plugin {plugin}" for plugin in arguments.plugin)
    print(f"Ledger: {path}.md; run the winner with: python run_all.py --datasets {path}-tuned.toml{plugins}")


def extended(task: str) -> str:
    """How the tuned task names the one it extends: by name, or by the whole path of a file."""
    path = task_path(task)
    return str(path.resolve()) if task.endswith(".toml") or "/" in task else path.stem


def split_of(suite: "Suite") -> str:
    held_out = round(suite.task.data.val * suite.facts.num_train)
    return f"{suite.task.data.val:.0%} of the training images ({held_out:,}), drawn by the seed"
