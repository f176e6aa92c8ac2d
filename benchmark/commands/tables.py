"""`tables`: rebuild the tables of a results folder from its records. Needs no torch."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark import render
from benchmark.cells import Table
from benchmark.columns import load_columns
from benchmark.commands.options import add_selection, add_table_options, asked_settings
from benchmark.errors import UserError
from benchmark.names import canonical, unknown_name
from benchmark.sheet import Sheet
from benchmark.significance import build_statistics
from benchmark.store import Store, write_atomically
from benchmark.tables import build_tables, complete, select
from benchmark.verdicts import build_companion

HELP = "rebuild the tables of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument(
        "--paper", nargs="+", metavar="NAME", help="published tables of this folder by name, or 'all' (see: paper)"
    )
    add_table_options(parser)


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest["task"]: manifest for manifest in store.manifests()}
    published = {manifest["name"]: manifest for manifest in store.paper_manifests()}
    if not manifests and not published:
        raise UserError(f"no results in '{arguments.results}'; make some with: python run_all.py --results DIR")
    store.check_writable()
    narrowed = [name for name in ("methods", "coverages", "reference", "scores") if getattr(arguments, name)]
    if arguments.paper and narrowed:
        raise UserError(f"--{narrowed[0]} is for tasks; published tables have their own rows and columns: leave it out")
    if arguments.paper and not published:
        raise UserError(f"no published tables in '{arguments.results}'; make some with: python run_all.py paper NAME")
    everything = not (arguments.datasets or arguments.paper or narrowed)
    only_paper = arguments.paper and not arguments.datasets
    tasks = [] if only_paper else select_names(arguments.datasets, list(manifests), "task")
    for name in tasks:
        manifest = select(manifests[name], arguments.methods, arguments.coverages, arguments.reference)
        write_tables(manifest | asked_settings(arguments), store, show=True)
    wanted = None if arguments.paper == ["all"] else arguments.paper
    for name in select_names(wanted, list(published), "paper table") if arguments.paper or everything else []:
        write_paper_table(published[name] | asked_settings(arguments), store, show=bool(arguments.paper) or not tasks)
    return 0


def select_names(wanted: list[str] | None, known: list[str], kind: str) -> list[str]:
    if wanted is None:
        return known
    names = {canonical(name): name for name in known}
    for name in wanted:
        if canonical(Path(name).stem) not in names:
            raise unknown_name(name, known, f"{kind} in this results folder:")
    return list(dict.fromkeys(names[canonical(Path(name).stem)] for name in wanted))


def write_tables(manifest: dict[str, Any], store: Store, *, show: bool) -> list[Path]:
    """Tables and statistics of one task, as Markdown, LaTeX and CSV; the tables are printed too."""
    manifest = complete(manifest)
    columns = load_columns(manifest, store)
    tables = build_tables(manifest, columns)
    paths = write_files(store.root / "tables", manifest["name"], tables)
    paths += write_files(store.root / "tables", f"{manifest['name']}-statistics", build_statistics(manifest, columns))
    if show:
        print(f"\n## {manifest['title']}\n\n{render.markdown(tables)}")
        sys.stdout.flush()
    return paths


def write_paper_table(manifest: dict[str, Any], store: Store, show: bool) -> list[Path]:
    """A published table in its own form, its companion with the published figures, and the statistics."""
    manifest = complete(manifest)
    columns = load_columns(manifest, store)
    table = build_tables(manifest, columns)[0]
    companion = build_companion(manifest, table)
    statistics = build_statistics(manifest, columns)
    parts: dict[str, Sequence[Table | Sheet]] = {"": [table], "-published": companion, "-statistics": statistics}
    if show:
        print(f"\n## {manifest['title']}\n\n{render.markdown([table])}\nPublished and ours: {companion[0].notes[0]}")
        sys.stdout.flush()
    folder = store.root / "paper"
    return [path for end, some in parts.items() for path in write_files(folder, f"{manifest['name']}{end}", some)]


def write_files(folder: Path, name: str, tables: Sequence[Table | Sheet]) -> list[Path]:
    """One file for each form."""
    texts = {"md": render.markdown(tables), "tex": render.latex(tables), "csv": render.csv(tables)}
    paths = [folder / f"{name}.{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_atomically(path, text.encode())
    return paths
