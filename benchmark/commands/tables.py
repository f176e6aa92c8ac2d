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

HELP = "rebuild the tables of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_table_options(parser)


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest["task"]: manifest for manifest in store.manifests()}
    if not manifests:
        raise UserError(f"no results in '{arguments.results}'; make some with: python run_all.py --results DIR")
    store.check_writable()
    for name in select_tasks(arguments.datasets, list(manifests)):
        manifest = select(manifests[name], arguments.methods, arguments.coverages, arguments.reference)
        write_tables(manifest | asked_settings(arguments), store, show=True)
    return 0


def select_tasks(wanted: list[str] | None, known: list[str]) -> list[str]:
    if wanted is None:
        return known
    names = {canonical(name): name for name in known}
    for name in wanted:
        if canonical(Path(name).stem) not in names:
            raise unknown_name(name, known, "task in this results folder:")
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


def write_files(folder: Path, name: str, tables: Sequence[Table | Sheet]) -> list[Path]:
    """One file for each form."""
    texts = {"md": render.markdown(tables), "tex": render.latex(tables), "csv": render.csv(tables)}
    paths = [folder / f"{name}.{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_atomically(path, text.encode())
    return paths
