"""`diff`: show which results moved (changed) between two folders. Exit code 1 if any did: use it to guard a change."""

import argparse

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.measure.statistics import LEVEL
from benchmark.store.mirror import folder_or_url
from benchmark.store.store import Store
from benchmark.tables.diff import MARGIN, compare_folders

HELP = "show which results moved (changed) between two folders (exit code 1 if any did)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=folder_or_url, metavar="RESULTS_A", help="the results to compare with")
    parser.add_argument("new", type=folder_or_url, metavar="RESULTS_B", help="the results that may have moved")
    part = "RESULTS_B repeats only a part of RESULTS_A: do not report what RESULTS_B lacks"
    parser.add_argument("--part", action="store_true", help=part)


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    stores = [Store(arguments.old), Store(arguments.new)]
    for store in stores:
        if not store.manifests() and not store.paper_manifests():
            raise UserError(f"no results in '{store.root}'; expected a folder that --results made")
    found = compare_folders(*stores)
    moved = found.moved if arguments.part else [*(f"{what}: gone" for what in found.gone), *found.moved]
    equal, changed, rounded = map(found.count_runs, ("equal", "changed", "rounded"))
    total = equal + changed + rounded
    print(f"{equal} of {counted(total, 'run')} of the same job are equal to the bit.")
    if rounded:
        print(
            f"{rounded} more are not equal, but were made with another kind of processor, version of torch or "
            "number of threads: their cells are compared instead."
        )
    print(
        f"{counted(len(found.tested), 'cell')} of other jobs or machines compared. A cell moved if its mean changed "
        f"by more than {MARGIN:g} points and Welch's test is significant (level {LEVEL:g}, Holm's correction over all)."
    )
    for line in found.notes:
        print(f"note: {line}")
    for line in moved:
        print(f"moved: {line}")
    print(f"{len(moved)} moved" if moved else "nothing moved")
    return 1 if moved else 0
