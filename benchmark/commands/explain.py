"""`explain`: the seeds, values, jobs and commit behind a cell of a table, and the test behind its marker."""

import argparse
from dataclasses import replace
from pathlib import Path

from benchmark.base.names import canonical, match_name
from benchmark.commands.options import add_results, add_test_options, asked_settings, coverage, no_results
from benchmark.measure.labels import labels_named
from benchmark.store.manifest import with_every_run
from benchmark.store.store import Store
from benchmark.tables.build import pick_reference
from benchmark.tables.explain import explain

HELP = "where a cell of a table comes from"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task of the results folder, or paper/NAME for a paper's table")
    parser.add_argument("method", metavar="METHOD", help="a column of its table: a label, or label+score")
    parser.add_argument("coverage", metavar="COVERAGE", type=coverage, help="in per cent, e.g. 90")
    add_results(parser)
    parser.add_argument("--reference", metavar="METHOD", help="the method to compare with (default: the table's own)")
    add_test_options(parser)


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest.name: manifest for manifest in store.manifests()}
    manifests |= {f"paper/{manifest.name}": manifest for manifest in store.paper_manifests()}
    if not manifests:
        raise no_results(arguments.results)
    stem = arguments.task if arguments.task.startswith("paper/") else Path(arguments.task).stem
    named = manifests[match_name(stem, manifests, "task in this results folder:")]
    manifest = asked_settings(arguments).applied_to(named)
    if not labels_named(canonical(arguments.method), manifest.owners) and not manifest.columns:
        manifest = with_every_run(manifest, store.paper_manifests())
    labels = [*manifest.owners, *manifest.columns]
    manifest = replace(manifest, reference=pick_reference(arguments.reference, manifest.reference, labels))
    print(explain(manifest, arguments.method, arguments.coverage, store))
    return 0
