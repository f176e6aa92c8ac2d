"""`paper`: regenerate published tables, and set them beside what was published. A run that several name is one job."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmark.base.units import counted
from benchmark.commands.dry_run import add_plan, check_plan
from benchmark.commands.options import (
    MakeRegistry,
    add_data_folders,
    add_device,
    add_results,
    add_speed,
    add_test_options,
    asked_settings,
    num_seeds,
)
from benchmark.commands.training import add_training, plan_or_train, suite_maker
from benchmark.paper.assemble import MAKERS, assemble_paper
from benchmark.paper.table_files import load_tables
from benchmark.report.update import make_parts, try_report
from benchmark.store.store import Store
from benchmark.tables import render
from benchmark.tables.render.write import write_paper_table

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
    add_device(parser)
    add_data_folders(parser)
    add_speed(parser)
    add_plan(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.launch.suites import paper_grids
    from benchmark.paper.settings_tables import settings_sheets

    check_plan(arguments)
    methods, store = make_registry([]), Store(arguments.results)
    if arguments.tables == [SETTINGS]:
        print(render.markdown(settings_sheets(methods, arguments.scale)))
        return 0
    maker = suite_maker(arguments, methods, range(arguments.seeds or 0))
    grids = paper_grids(load_tables(arguments.tables), arguments.scale, maker)
    manifests = [manifest | asked_settings(arguments) for grid in grids for manifest in grid.manifests]

    def finish() -> None:
        show_results(manifests, store, quiet=arguments.quiet)

    suites = [grid.suite for grid in grids]
    return plan_or_train(suites, store, arguments, methods, noting=manifests_noted(manifests, store), finish=finish)


@contextmanager
def manifests_noted(manifests: Sequence[dict[str, Any]], store: Store) -> Iterator[None]:
    for manifest in manifests:
        store.write_manifest(manifest["name"], manifest, "paper")
    yield


def show_results(manifests: Sequence[dict[str, Any]], store: Store, *, quiet: bool) -> None:
    """Write tables and page, and say where they are."""
    shown = [assemble_paper(manifest, store) for manifest in manifests]
    paths = [path for each in shown for path in write_paper_table(each, store.root, show=not quiet)]
    report = try_report(store, MAKERS, make_parts("paper", manifests, shown, store))
    if not quiet:
        print(f"{counted(len(paths), 'file')} in {store.root / 'paper'}/\n{report}")
