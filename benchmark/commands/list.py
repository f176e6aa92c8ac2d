"""`list`: what can be named on the command line."""

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmark.commands.options import add_plugins

HELP = "methods, ingredients, tasks, evaluation sets, published tables, scores, networks and data sources"
WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    add_plugins(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.listing import list_names

    listing = list_names(arguments.plugin)
    if arguments.json:
        print(json.dumps(listing, indent=1))
    else:
        listing["methods"] = in_words(listing["methods"])
        for kind in ("scores", "networks", "sources"):
            listing[kind] = [with_file_in_title(row) for row in listing[kind]]
        print("\n\n".join(map(fitted, listing.values())))
    return 0


def in_words(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each label: what the labels of a file share is said once, and of each what it sets."""
    told, lines = set(), []
    for method in methods:
        first = method["file"] not in told
        told.add(method["file"])
        parts = [method["title"], f"({method['reference']})"] if first else []
        settings = [f"[{method['settings']}]"] if method["settings"] else []
        lines.append({"label": method["label"], "file": method["file"], "title": " ".join(parts + settings)})
    return lines


def with_file_in_title(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose title names the file, where it comes from a user's own."""
    kept = {name: value for name, value in row.items() if name != "file"}
    return kept | {"title": f"{row['title']} ({Path(row['file']).name})"} if row["file"] else kept


def fitted(rows: list[dict[str, Any]]) -> str:
    """Return a table whose last column is broken into lines where it would be too wide."""
    *names, last = rows[0]
    taken = sum(2 + max(len(name), *(len(row[name]) for row in rows)) for name in names)
    wrapped = [{**row, last: textwrap.fill(row[last], max(20, WIDTH - taken))} for row in rows]
    return str(tabulate(wrapped, headers="keys", tablefmt="simple", disable_numparse=True))
