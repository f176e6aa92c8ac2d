"""`paper`: regenerate published tables, with the published numbers beside them. A run that several need is one job."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmark.base.limits import SEEDS
from benchmark.base.units import counted
from benchmark.commands import options
from benchmark.commands.dry_run import check_plan
from benchmark.commands.training import add_training, plan_or_train, suite_maker, write_results
from benchmark.paper.table_files import load_tables
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables import render

HELP = "the paper's tables with your own numbers beside the published ones"
SETTINGS = "settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    tables = "tables by name (see: list), or 'all'; 'settings' prints the settings tables of the configs"
    options.add_list(parser, "tables", "NAME", tables)
    parser.add_argument(
        "--scale",
        choices=["paper", "cpu"],
        default="paper",
        help="paper: the published tasks (default; they need a GPU); cpu: small versions of them, TASK-cpu, with "
        "results that cannot be compared with the published ones",
    )
    options.add_count(parser, "--seeds", SEEDS, "seeds 0..N-1 (default: as many as the paper's)")
    options.add_results(parser)
    options.add_test_options(parser)
    options.add_device(parser)
    options.add_data_folders(parser)
    add_training(parser)


def run(arguments: argparse.Namespace, make_registry: options.MakeRegistry) -> int:
    from benchmark.launch.suites import paper_grids
    from benchmark.paper.settings_tables import settings_sheets

    check_plan(arguments)
    methods, store = make_registry([]), Store(arguments.results)
    if arguments.tables == [SETTINGS]:
        print(render.markdown(settings_sheets(methods, arguments.scale)))
        return 0
    maker = suite_maker(arguments, methods, range(arguments.seeds or 0))
    grids = paper_grids(load_tables(arguments.tables), arguments.scale, maker)
    asked = options.asked_settings(arguments)
    manifests = [asked.applied_to(manifest) for grid in grids for manifest in grid.manifests]

    def finish() -> None:
        paths, report = write_results("paper", manifests, store, show=not arguments.quiet)
        if not arguments.quiet:
            print(f"{counted(len(paths), 'file')} in {store.root / 'paper'}/\n{report}")

    suites = [grid.suite for grid in grids]
    return plan_or_train(suites, store, arguments, methods, noting=manifests_noted(manifests, store), finish=finish)


@contextmanager
def manifests_noted(manifests: Sequence[Manifest], store: Store) -> Iterator[None]:
    """Write manifests before the training begins."""
    for manifest in manifests:
        store.write_manifest(manifest, "paper")
    yield
