"""`paper`: plan the published tables. A run that several of them name is one job."""

import argparse
from collections import defaultdict
from pathlib import Path

from benchmark.commands.options import add_data_folders, add_speed, folders_of, positive, read_tasks
from benchmark.commands.run import MakeRegistry, show_plan
from benchmark.errors import UserError
from benchmark.store import Store

HELP = "the tables of the paper: what they need"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="+", metavar="NAME", help="tables by name (configs/tables/), or 'all'")
    parser.add_argument("--seeds", type=positive, metavar="N", help="seeds 0..N-1 (default: as many as the paper's)")
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="where records lie")
    add_data_folders(parser)
    add_speed(parser)
    parser.add_argument("--no-shared-warmup", action="store_true", help="let every job train its own warm-up")
    parser.add_argument("--dry-run", action="store_true", help="show the plan: jobs with their state, epochs, disk")
    parser.add_argument("--json", action="store_true", help="with --dry-run: print JSON for machines")


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.jobs import Suite
    from benchmark.planning import find_data
    from benchmark.published import load_tables, table_entries

    tables = load_tables(arguments.tables)
    if not arguments.dry_run:
        raise UserError("published tables can only be planned by this version: add --dry-run")
    methods, by_task = make_registry([]), defaultdict(list)
    for table in tables:
        by_task[table.task].append(table)
    suites = []
    for name, wanted in by_task.items():
        (task,) = read_tasks([name], arguments)
        data = find_data(task, folders_of(arguments), required=False)
        seeds = range(arguments.seeds or task.seeds)
        entries = [entry for table in wanted for entry in table_entries(table, task, seeds, methods, data.sha256)]
        suites.append(Suite(task, tuple(entries), task.coverages, task.reference, {}, data.sha256, data.facts))
    return show_plan(suites, Store(arguments.results), as_json=arguments.json, share=not arguments.no_shared_warmup)
