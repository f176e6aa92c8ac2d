"""`diff`: what moved between two results folders. Exit code 1 if anything did, so that it can guard a change."""

import argparse

from benchmark.diff import MARGIN, compare_folders
from benchmark.errors import UserError
from benchmark.remote import place
from benchmark.stats import LEVEL
from benchmark.store import Store

HELP = "what moved between two results folders (exit 1 if anything did)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=place, metavar="RESULTS_A", help="the results to compare with")
    parser.add_argument("new", type=place, metavar="RESULTS_B", help="the results that may have moved")


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    stores = [Store(arguments.old), Store(arguments.new)]
    for store in stores:
        if not store.manifests() and not store.paper_manifests():
            raise UserError(f"no results in '{store.root}'; expected a folder that --results made")
    found = compare_folders(*stores)
    total = found.equal_runs + found.changed_runs
    print(f"{found.equal_runs} of {total} runs of the same job are equal to the bit.")
    print(
        f"{len(found.tested)} cells of other jobs were compared: Welch's test at {LEVEL:g}, Holm's correction over "
        f"all, and more than {MARGIN:g} points."
    )
    for line in found.notes:
        print(f"note: {line}")
    for line in found.moved:
        print(f"moved: {line}")
    print(f"{len(found.moved)} moved" if found.moved else "nothing moved")
    return 1 if found.moved else 0
