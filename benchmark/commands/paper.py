"""`paper`: regenerate published tables, and set them beside what was published. A run that several name is one job."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmark import render
from benchmark.assemble import assemble_paper
from benchmark.cache import Folders
from benchmark.commands.options import (
    add_data_folders,
    add_results,
    add_speed,
    add_test_options,
    asked_settings,
    default_seeds,
    folders_of,
    num_seeds,
    read_tasks,
    tell_of_data,
)
from benchmark.commands.plan import add_plan, check_plan, needs_data, show_plan
from benchmark.commands.run import MakeRegistry, entry_of_manifest
from benchmark.commands.tables import make_parts, try_report, write_paper_table
from benchmark.commands.training import add_training, check_writable, devices_for, report_failures, run_suites
from benchmark.stale import installed_torch
from benchmark.store import Store
from benchmark.units import counted

if TYPE_CHECKING:
    from benchmark.jobs import Entry, Methods, Suite
    from benchmark.planner import Allowance
    from benchmark.published import PublishedTable

HELP = "the paper's tables with your own numbers beside the published ones"
SETTINGS = "settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tables",
        nargs="+",
        metavar="NAME",
        help="tables by name (see: list), or 'all'; 'settings' prints the settings tables of the configs",
    )
    parser.add_argument(
        "--scale",
        choices=["paper", "cpu"],
        default="paper",
        help="the published tasks (default; need a GPU), or their small siblings '-cpu', whose figures do not compare",
    )
    parser.add_argument("--seeds", type=num_seeds, metavar="N", help="seeds 0..N-1 (default: as many as the paper's)")
    add_results(parser)
    add_test_options(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.published import load_tables

    check_plan(arguments)
    methods, folders, store = make_registry([]), folders_of(arguments), Store(arguments.results)
    if arguments.tables == [SETTINGS]:
        return print_settings(arguments, methods)
    grids = make_grids(load_tables(arguments.tables), arguments, methods, folders)
    suites = [grid.suite for grid in grids]
    if arguments.dry_run:
        return show_plan(suites, store, arguments, methods, folders)
    devices = devices_for(suites, arguments, methods)
    check_writable(store, arguments)
    manifests = [manifest | asked_settings(arguments) for grid in grids for manifest in grid.manifests]
    if not arguments.max_steps:
        for manifest in manifests:
            store.write_manifest(manifest["name"], manifest, "paper")
    failures = run_suites(suites, store, arguments, methods, folders, devices)
    if not arguments.max_steps:
        shown = [assemble_paper(manifest, store) for manifest in manifests]
        paths = [path for each in shown for path in write_paper_table(each, store, show=not arguments.quiet)]
        report = try_report(store, make_parts("paper", manifests, shown, store))
        if not arguments.quiet:
            print(f"{counted(len(paths), 'file')} in {store.root / 'paper'}/\n{report}")
    return report_failures(failures)


def print_settings(arguments: argparse.Namespace, methods: "Methods") -> int:
    from benchmark.settings import settings_sheets

    print(render.markdown(settings_sheets(methods, arguments.scale)))
    return 0


@dataclass(frozen=True)
class Grid:
    """The runs of all tables of one task, and what each of the tables shows of them."""

    suite: "Suite"
    manifests: list[dict[str, Any]]


def make_grids(
    tables: "Sequence[PublishedTable]", arguments: argparse.Namespace, methods: "Methods", folders: Folders
) -> list[Grid]:
    from benchmark.planner import Allowance

    by_task: dict[str, list[PublishedTable]] = {}
    allowance = Allowance()
    for table in tables:
        by_task.setdefault(table.task, []).append(table)
    return [make_grid(name, wanted, arguments, methods, folders, allowance) for name, wanted in by_task.items()]


def make_grid(
    name: str,
    tables: "Sequence[PublishedTable]",
    arguments: argparse.Namespace,
    methods: "Methods",
    folders: Folders,
    allowance: "Allowance",
) -> Grid:
    """Everything about the tables of one task checked before anything runs."""
    from benchmark.jobs import Suite
    from benchmark.planner import Planner, table_entries
    from benchmark.planning import check_recipe, find_data
    from benchmark.published import SCALES, table_manifest

    (task,) = read_tasks([f"{name}{SCALES[arguments.scale]}"], arguments)
    data = find_data(task, folders, required=needs_data(task, arguments))
    check_recipe(task, data.facts)
    tell_of_data(task, data, arguments)
    planner = Planner(task, methods, data.sha256, arguments.max_steps)
    seeds = range(arguments.seeds or default_seeds(task, arguments))
    entries: list[Entry] = []
    manifests = []
    for table in tables:
        own = allowance.all_of(partial(table_entries, table, arguments.scale, planner, methods), seeds)
        shown = table_manifest(table, arguments.scale, task, data.remark)
        entries_shown = [entry_of_manifest(entry) for entry in own]
        manifests.append({**shown, "torch": installed_torch(), "entries": entries_shown})
        entries += own
    known = (data.sha256, data.facts, data.remark)
    suite = Suite(task, tuple(entries), task.coverages, task.reference, {}, *known, data_state=data.state)
    return Grid(suite, manifests)
