"""`run`: train what is missing of a grid of tasks, methods and seeds, then write its tables."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.assemble import assemble
from benchmark.cache import Folders
from benchmark.commands.options import (
    add_data_folders,
    add_selection,
    add_set,
    add_speed,
    add_table_options,
    asked_settings,
    default_seeds,
    folders_of,
    num_seeds,
    read_standards,
    read_tasks,
    tell_of_data,
    whole,
)
from benchmark.commands.plan import add_plan, check_plan, needs_data, show_plan
from benchmark.commands.tables import make_parts, try_report, write_tables
from benchmark.commands.training import add_training, check_writable, devices_for, report_failures, run_suites
from benchmark.config import TaskConfig
from benchmark.earlier import needed_plugin, with_earlier
from benchmark.errors import UserError
from benchmark.files import Damaged
from benchmark.limits import Within
from benchmark.names import canonical, labels_named, match_labels
from benchmark.recipe import recipe_of
from benchmark.schema import identity
from benchmark.stale import installed_torch
from benchmark.store import Store

if TYPE_CHECKING:
    from benchmark.jobs import Entry, Methods, Suite
    from benchmark.planner import Allowance

MakeRegistry = Callable[[Sequence[Path]], "Methods"]

HELP = "train what is missing of a grid and write its tables (the default command)"
DEFAULT_TASKS = ("digits", "gaussians")
"""Need no download and finish in minutes."""
SEED = Within(0, 2**32 - 1, "it names a stream of random numbers, and any other does as well")


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
        "--seeds", type=num_seeds, metavar="N", help="seeds 0..N-1 (default: the task's own number, usually 5)"
    )
    seeds.add_argument("--seed-list", nargs="+", type=whole(SEED), metavar="SEED", help="these seeds")
    add_table_options(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_set(parser)
    add_plugins(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.former import suite_as_found

    check_plan(arguments)
    if any(override.strip().startswith("bound.") for override in arguments.set) and not arguments.track_bound:
        raise UserError("--set bound.… is for --track-bound; add --track-bound, or leave it out")
    from benchmark.planner import Allowance

    folders = folders_of(arguments)
    methods = make_registry(arguments.plugin)
    names, allowance = arguments.datasets or DEFAULT_TASKS, Allowance()
    tasks, standards = read_tasks(names, arguments, arguments.set), read_standards(names, arguments)
    store = Store(arguments.results)
    made = [make_suite(task, standards[task.name], arguments, methods, folders, allowance) for task in tasks]
    suites = [suite_as_found(suite, store) for suite in made]
    if arguments.dry_run:
        return show_plan(suites, store, arguments, methods, folders)
    return train(suites, store, arguments, methods, folders)


def train(
    suites: "list[Suite]", store: Store, arguments: argparse.Namespace, methods: "Methods", folders: Folders
) -> int:
    """Run what is missing, then show where things are and what failed."""
    devices = devices_for(suites, arguments, methods)
    check_writable(store, arguments)
    manifests = [] if arguments.max_steps else [manifest(suite) for suite in suites]
    for each in manifests:
        keep_manifest(each, store)
    failures = run_suites(suites, store, arguments, methods, folders, devices)
    if not arguments.max_steps:
        shown = [assemble(each, store) for each in manifests]
        paths = [path for each in shown for path in write_tables(each, store, show=not arguments.quiet)]
        report = try_report(store, make_parts("task", manifests, shown, store))
        if not arguments.quiet:
            print(where_to_look(paths, report, store))
    return report_failures(failures)


def keep_manifest(manifest: dict[str, Any], store: Store) -> None:
    """In the place of the one before, whose runs are kept in mind."""
    before = None
    with suppress(Damaged):
        before = store.read_json(Path("manifests", f"{manifest['name']}.json"))
    store.write_manifest(manifest["name"], with_earlier(manifest, before))


def make_suite(
    task: TaskConfig,
    standard: TaskConfig,
    arguments: argparse.Namespace,
    methods: "Methods",
    folders: Folders,
    allowance: "Allowance",
) -> "Suite":
    """The grid of one task, everything about it checked before anything runs."""
    from benchmark.jobs import Suite
    from benchmark.planner import label_owners, plan
    from benchmark.planning import check_recipe, find_data
    from benchmark.tables import pick_reference

    seeds = arguments.seed_list or range(arguments.seeds or default_seeds(task, arguments))
    owners = label_owners(methods)
    check_plugins(arguments, methods, owners)
    labels = match_labels(arguments.methods or task.methods, owners)
    default = match_labels([task.reference], owners, f"reference of {task.name}:")[0]
    reference = pick_reference(arguments.reference, default, labels)
    data = find_data(task, folders, required=needs_data(task, arguments))
    check_recipe(task, data.facts)
    tell_of_data(task, data, arguments)
    distinct, steps = dict.fromkeys(seeds), arguments.max_steps
    entries = plan(task, labels, distinct, methods, data.sha256, steps, standard, allowance)
    for entry in entries:
        if entry.reason:
            print(f"{task.name} {entry.label}: {entry.reason}; its column stays empty", file=sys.stderr)
    if not any(entry.jobs for entry in entries):
        raise UserError(f"{task.name}: none of {', '.join(labels)} can run here: {entries[0].reason}")
    coverages = tuple(dict.fromkeys(arguments.coverages or task.coverages))
    shown, known = asked_settings(arguments), (data.sha256, data.facts, data.remark)
    return Suite(task, entries, coverages, reference, shown, *known, standard, data.state)


def check_plugins(arguments: argparse.Namespace, methods: "Methods", owners: dict[str, str]) -> None:
    """A label that the results know from a plugin says which one it was."""
    for name in arguments.methods or ():
        if not labels_named(canonical(name), owners):
            plugin = needed_plugin(name, Store(arguments.results).manifests(), methods.names())
            if plugin:
                raise UserError(f"method '{name}' was made by a plugin; bring it in with --plugin {plugin}")


def manifest(suite: "Suite") -> dict[str, Any]:
    return {
        "name": suite.task.name,
        "task": suite.task.name,
        "title": suite.task.title,
        "coverages": list(suite.coverages),
        "reference": suite.reference,
        "baseline": suite.task.baseline,
        "torch": installed_torch(),
        "standard": recipe_of(suite.standard or suite.task),
        **suite.settings,
        **({"remark": suite.remark} if suite.remark else {}),
        "entries": [entry_of_manifest(entry) for entry in suite.entries],
    }


def entry_of_manifest(entry: "Entry") -> dict[str, Any]:
    seeds = [job.seed for job in entry.jobs]
    made_by = (entry.jobs[0].id, entry.jobs[0].code) if seeds else ("", "")
    named = {"label": entry.label, "method": entry.method}
    described = {**named, "job": made_by[0], "code": made_by[1], "seeds": seeds}
    modified = {name: identity(values) for name, values in entry.modified.items()}
    optional = {"coverage": entry.coverage, "epoch": entry.epoch, "reason": entry.reason, "modified": modified}
    return described | {key: value for key, value in optional.items() if value}


def where_to_look(paths: list[Path], report: str, store: Store) -> str:
    tables = "\n".join(f"  {path}" for path in paths)
    records = f"{store.root}/<task>/<method>/<job>/seed-<n>/"
    return f"Tables:\n{tables}\n{report}\nRecords, predictions and learning curves: {records}"
