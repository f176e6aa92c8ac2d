"""`list`: what can be named on the command line."""

import argparse
import json
from typing import Any

from tabulate import tabulate

from benchmark.commands.run import MakeRegistry, add_plugins
from benchmark.post_hoc import POST_HOC
from benchmark.published import load_tables
from benchmark.scores import TITLES
from benchmark.tasks import load_task, task_names

HELP = "methods, tasks, published tables and scores, one line each"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    add_plugins(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    methods = make_registry(arguments.plugin)
    found = [(label, name, methods.get(name)) for name in methods.names() for label in methods.get(name).labels]
    listing: dict[str, list[dict[str, Any]]] = {
        "methods": [
            {
                "label": label,
                "file": name,
                "settings": " ".join(f"{field}={value}" for field, value in method.labels[label].items()),
                "title": method.title,
                "reference": method.reference,
            }
            for label, name, method in found
        ],
        "tasks": [{"task": name, "title": load_task(name).title} for name in task_names()],
        "published tables": [
            {"table": table.name, "task": table.task, "title": table.title} for table in load_tables(["all"])
        ],
        "scores": [
            {"score": name, "read from": "any method" if name in POST_HOC else "its own method", "title": title}
            for name, title in TITLES.items()
        ],
    }
    if arguments.json:
        print(json.dumps(listing, indent=1))
    else:
        print("\n\n".join(tabulate(rows, headers="keys", tablefmt="simple") for rows in listing.values()))
    return 0
