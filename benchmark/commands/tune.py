"""`tune`: try the grid of a method on held-out training images, keep every trial, write the winner as a task file."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from benchmark import render
from benchmark.commands.options import (
    add_data_folders,
    add_results,
    add_set,
    add_speed,
    folders_of,
    num_seeds,
    read_tasks,
    tell_of_data,
)
from benchmark.commands.plan import add_plan, check_plan, needs_data, show_plan
from benchmark.commands.run import MakeRegistry, add_plugins
from benchmark.commands.tables import write_files
from benchmark.commands.training import add_training, check_writable, devices_for, report_failures, run_suites
from benchmark.errors import UserError
from benchmark.files import Damaged, write_atomically
from benchmark.names import is_plain, match_name
from benchmark.store import Store
from benchmark.tasks import task_path

if TYPE_CHECKING:
    from benchmark.jobs import Methods, Suite
    from benchmark.ledger import Settings
    from benchmark.tuning import Tried

HELP = "search the settings of a method on held-out training images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task by name or file; its [tune] tables are the grids")
    parser.add_argument("method", metavar="METHOD", help="the method by its label (see: list)")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=V,V",
        help="values to try instead of the task's grid, of the method's settings or of the task's fields, e.g. "
        "weight=0.1,1 or optimizer.lr=0.1,0.05 (repeatable; all combinations)",
    )
    add_set(parser)
    seeds = "seeds 0..N-1 of each trial, whose mean counts (default: 1)"
    parser.add_argument("--seeds", type=num_seeds, default=1, metavar="N", help=seeds)
    add_results(parser)
    add_plugins(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    check_plan(arguments)
    methods, folders, store = make_registry(arguments.plugin), folders_of(arguments), Store(arguments.results)
    search = make_search(arguments, methods, store)
    if arguments.dry_run:
        return show_plan([search.suite], store, arguments, methods, folders)
    devices = devices_for([search.suite], arguments, methods)
    check_writable(store, arguments)
    if arguments.max_steps:
        return report_failures(run_suites([search.suite], store, arguments, methods, folders, devices))
    keep_trials(search, arguments, methods, store)
    try:
        failures = run_suites([search.suite], store, arguments, methods, folders, devices)
    finally:
        keep_trials(search, arguments, methods, store)
    if not arguments.quiet:
        show_trials(search, arguments, store)
    return report_failures(failures)


@dataclass(frozen=True)
class Search:
    """The grid of one method as a suite, and what each of its entries tries."""

    label: str
    suite: "Suite"
    tried: "Sequence[Tried]"
    split: str
    """The images that judge the trials, in words."""


def make_search(arguments: argparse.Namespace, methods: "Methods", store: Store) -> Search:
    """The grid as a suite on the task with a part of its training images held out."""
    from benchmark.jobs import Suite
    from benchmark.planner import Allowance, Planner, check_settings, label_owners
    from benchmark.planning import check_recipe, find_data
    from benchmark.tuning import as_found, find_grid, make_trials, value_at, without_idle_validation

    owners = label_owners(methods)
    label = match_name(arguments.method, owners, "method")
    (task,) = read_tasks([arguments.task], arguments, arguments.set)
    check_settings(task, methods, owners)
    trials = find_grid(task, label, owners[label], arguments.grid)
    data = find_data(task, folders_of(arguments), required=needs_data(task, arguments))
    num_held_out = round(task.tune_val * data.facts.num_train)
    if not num_held_out:
        raise UserError(
            f"tune_val = {task.tune_val:g} holds out none of {data.facts.num_train} training images; raise it"
        )
    facts = replace(data.facts, num_train=data.facts.num_train - num_held_out, num_test=num_held_out)
    tell_of_data(task, data, arguments)

    def planner_with(changes: "Settings") -> Planner:
        overrides = [*arguments.set, *(f"{name}={value}" for name, value in changes.items())]
        (changed,) = read_tasks([arguments.task], arguments, overrides)
        judged = without_idle_validation(changed, methods.get(owners[label]), methods)
        check_recipe(judged, facts)
        return Planner(judged, methods, data.sha256, arguments.max_steps, held_out=task.tune_val)

    names = [override.partition("=")[0].strip() for override in arguments.set]
    always = {name: value_at(task, name) for name in names}
    make = partial(make_trials, planner_with, methods, label, trials, always=always)
    made = Allowance().all_of(make, range(arguments.seeds))
    tried = as_found(made, store)
    entries = tuple(each.entry for each in tried)
    trial_task = planner_with({}).task
    suite = Suite(
        trial_task, entries, task.coverages, task.reference, {}, data.sha256, facts, data.remark, data_state=data.state
    )
    split = f"{task.tune_val:.0%} of the training images ({num_held_out:,}), drawn by the seed"
    return Search(label, suite, tried, split)


def keep_trials(search: Search, arguments: argparse.Namespace, methods: "Methods", store: Store) -> None:
    """Into the ledger go all trials, also before they are run; the winners go into task files."""
    from benchmark.ledger import add_to_ledger, ledger_sheets, trials_of, tuned_tasks
    from benchmark.tuning import read_trials, with_makers

    task, owner, folder = search.suite.task, search.tried[0].entry.method, store.root / "tune"
    trials = read_trials(search.tried, methods.get(owner), search.split, store)
    fixed = {"task": task.name, "title": task.title, "extends": extended(arguments.task)}
    folder.mkdir(exist_ok=True)
    with FileLock(folder / f"{task.name}.lock"):
        before = read_ledger(task.name, store) or fixed
        if before["extends"] != fixed["extends"]:
            raise UserError(f"'{folder / task.name}.json' is the ledger of {before['extends']}; use another --results")
        known = with_makers(trials_of(before, search.label), task.name, owner, store)
        ledger = add_to_ledger(before | fixed, search.label, known, trials, range(arguments.seeds))
        files = tuned_tasks(ledger)
        store.replace_json(ledger_place(task.name), ledger | {"files": list(files)})
        write_files(folder, task.name, ledger_sheets(ledger))
        for name, text in files.items():
            write_atomically(folder / f"{name}.toml", text.encode())
        for name in before.get("files", []):
            if name not in files and is_plain(name):
                (folder / f"{name}.toml").unlink(missing_ok=True)


def ledger_place(task: str) -> Path:
    return Path("tune", f"{task}.json")


def read_ledger(task: str, store: Store) -> dict[str, Any] | None:
    """None where there is none; a damaged one is moved aside when the new one is written."""
    with suppress(Damaged):
        return store.read_json(ledger_place(task))
    return None


def show_trials(search: Search, arguments: argparse.Namespace, store: Store) -> None:
    from benchmark.ledger import choices_of, trials_of, trials_sheet, tuned_name

    folder, task = store.root / "tune", search.suite.task.name
    ledger = read_ledger(task, store) or {}
    entry, trials = ledger["methods"][search.label], trials_of(ledger, search.label)
    print(render.markdown([trials_sheet(search.label, trials, choices_of(entry))]))
    best = next((trial for trial in trials if trial.job == entry["chosen"]), None)
    plugins = "".join(f" --plugin {plugin}" for plugin in arguments.plugin)
    if best is not None:
        path = folder / f"{tuned_name(task, best.changes)}.toml"
        print(f"Run the winner with: python run_all.py --datasets {path}{plugins}")
    print(f"Ledger: {folder / task}.md")


def extended(task: str) -> str:
    """How the tuned task names the one it extends: by name, or by the whole path of a file."""
    path = task_path(task)
    return str(path.resolve()) if task.endswith(".toml") or "/" in task else path.stem
