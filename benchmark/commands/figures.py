"""`figures`: draw the figures of a results folder from its records, as PNG and PDF. Needs no torch."""

import argparse

from benchmark.base.errors import UserError
from benchmark.base.names import select_names
from benchmark.commands.options import (
    add_out,
    add_reference,
    add_results,
    add_scores,
    add_selection,
    asked_settings,
    no_results,
)
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.store.version_control import left_alone, place_to_write
from benchmark.tables.build import select

SENSITIVITY = ("q", "s", "w", "e_s")
"""Published tables that vary one setting, also on the small sibling of their task."""

HELP = "draw the figures of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_results(parser)
    add_reference(parser)
    add_scores(parser)
    add_out(parser, "figures")
    parser.add_argument(
        "--plain", action="store_true", help="print the sentences that stand below the figures instead of drawing them"
    )


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest.task: manifest for manifest in store.manifests()}
    published = store.paper_manifests()
    if not manifests and not published:
        raise no_results(arguments.results)
    tasks: list[str] = []
    if manifests or arguments.datasets:
        tasks = select_names(arguments.datasets, [*manifests], "task in this results folder:")
    chosen = [select(manifests[name], arguments.methods, None, arguments.reference, published) for name in tasks]
    if not chosen and not any(map(varies_a_setting, published)):
        raise UserError(f"no task and no sensitivity table in '{arguments.results}', so nothing to draw")
    narrowed = arguments.datasets or arguments.methods or arguments.reference or arguments.scores
    place = place_to_write(arguments.results, arguments.out)
    if place is None:
        raise UserError(left_alone(arguments.results))
    # Only now, so that help and errors need not wait for matplotlib.
    from benchmark.figures.catalogue import write_published_figures, write_task_figures

    for manifest in chosen:
        write_task_figures(asked_settings(arguments).applied_to(manifest), store, place, plain=arguments.plain)
    if not narrowed:
        write_published_figures([*filter(varies_a_setting, published)], store, place, plain=arguments.plain)
    return 0


def varies_a_setting(manifest: Manifest) -> bool:
    return manifest.name.removesuffix("-cpu") in SENSITIVITY
