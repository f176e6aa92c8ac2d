"""`tables`: rebuild the tables and the report of a results folder from its records. Needs no torch."""

import argparse
import sys

from benchmark.base.errors import UserError
from benchmark.base.names import select_names
from benchmark.base.program import program
from benchmark.commands.options import add_list, add_out, add_selection, add_table_options, asked_settings, no_results
from benchmark.paper.assemble import MAKERS, assemble_paper
from benchmark.report.update import Parts, make_parts, try_report
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.store.version_control import left_alone, place_to_write
from benchmark.tables.assemble import assemble
from benchmark.tables.build import select
from benchmark.tables.render.write import write_paper_table, write_tables

HELP = "rebuild the tables and the report of a results folder"
HERE = "in this results folder:"
Manifests = dict[str, Manifest]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_list(parser, "--paper", "NAME", "published tables of this folder by name, or 'all' (see: paper)")
    add_table_options(parser)
    add_out(parser, "tables and report")


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest.task: manifest for manifest in store.manifests()}
    published = {manifest.name: manifest for manifest in store.paper_manifests()}
    tasks, papers = chosen_names(arguments, manifests, published)
    place = place_to_write(arguments.results, arguments.out)
    parts: Parts = {}
    asked = asked_settings(arguments)
    for name in tasks:
        wanted = (arguments.methods, arguments.coverages, arguments.reference)
        manifest = asked.applied_to(select(manifests[name], *wanted, [*published.values()]))
        shown = assemble(manifest, store)
        write_tables(shown, place, show=True)
        parts |= make_parts("task", [manifest], [shown], store) if place else {}
    for name in papers:
        manifest = asked.applied_to(published[name])
        shown = assemble_paper(manifest, store)
        write_paper_table(shown, place, show=bool(arguments.paper) or not tasks)
        parts |= make_parts("paper", [manifest], [shown], store) if place else {}
    if place:
        print(try_report(store, MAKERS, parts, place), file=sys.stderr)
    else:
        print(f"Nothing is written: {left_alone(arguments.results)}", file=sys.stderr)
    return 0


def chosen_names(
    arguments: argparse.Namespace, manifests: Manifests, published: Manifests
) -> tuple[list[str], list[str]]:
    """Return the names of the tasks and of the published tables to show. Refuse what contradicts itself."""
    if not manifests and not published:
        raise no_results(arguments.results)
    narrowed = [name for name in ("methods", "coverages", "reference", "scores") if getattr(arguments, name)]
    if arguments.paper and narrowed:
        raise UserError(f"--{narrowed[0]} is for tasks; published tables have their own rows and columns: leave it out")
    if arguments.paper and not published:
        raise UserError(f"no published tables in '{arguments.results}'; make some with: {program()} paper NAME")
    tasks: list[str] = []
    if arguments.datasets or not arguments.paper:
        tasks = select_names(arguments.datasets, list(manifests), f"task {HERE}")
    papers: list[str] = []
    if arguments.paper or not (arguments.datasets or narrowed):
        wanted = None if arguments.paper == ["all"] else arguments.paper
        papers = select_names(wanted, list(published), f"paper table {HERE}")
    return tasks, papers
