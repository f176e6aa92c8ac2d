"""`tables`: rebuild the tables and the report of a results folder from its records. Needs no torch."""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmark import latex, render
from benchmark.assemble import Assembled, assemble, assemble_paper
from benchmark.cells import Table
from benchmark.commands.options import add_selection, add_table_options, asked_settings
from benchmark.commands.reading import add_out, left_alone, place_to_write
from benchmark.errors import UserError
from benchmark.files import write_if_other
from benchmark.names import canonical, unknown_name
from benchmark.report import write_report
from benchmark.report.page import make_part
from benchmark.report.parts import Part, kept_or_made, make_and_keep
from benchmark.sheet import Sheet
from benchmark.store import Store
from benchmark.tables import select
from benchmark.tidy import runs_csv

Made = dict[tuple[str, str], Part | None]
"""Parts of the page by kind and name; None where the records cannot be shown."""
MAKERS: dict[str, Callable[[dict[str, Any], Store], Assembled]] = {"task": assemble, "paper": assemble_paper}
HELP = "rebuild the tables and the report of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument(
        "--paper", nargs="+", metavar="NAME", help="published tables of this folder by name, or 'all' (see: paper)"
    )
    add_table_options(parser)
    add_out(parser, "tables and report")


def run(arguments: argparse.Namespace, make_registry: object) -> int:
    store = Store(arguments.results)
    manifests = {manifest["task"]: manifest for manifest in store.manifests()}
    published = {manifest["name"]: manifest for manifest in store.paper_manifests()}
    if not manifests and not published:
        raise UserError(f"no results in '{arguments.results}'; make some with: python run_all.py --results DIR")
    narrowed = [name for name in ("methods", "coverages", "reference", "scores") if getattr(arguments, name)]
    if arguments.paper and narrowed:
        raise UserError(f"--{narrowed[0]} is for tasks; published tables have their own rows and columns: leave it out")
    if arguments.paper and not published:
        raise UserError(f"no published tables in '{arguments.results}'; make some with: python run_all.py paper NAME")
    everything = not (arguments.datasets or arguments.paper or narrowed)
    only_paper = arguments.paper and not arguments.datasets
    tasks = [] if only_paper else select_names(arguments.datasets, list(manifests), "task")
    place = place_to_write(arguments)
    written = None if place is None else Store(place)
    made: Made = {}
    for name in tasks:
        asked = (arguments.methods, arguments.coverages, arguments.reference)
        manifest = select(manifests[name], *asked, [*published.values()]) | asked_settings(arguments)
        shown = assemble(manifest, store)
        write_tables(shown, written, show=True)
        made |= make_parts("task", [manifest], [shown], store) if place else {}
    wanted = None if arguments.paper == ["all"] else arguments.paper
    for name in select_names(wanted, list(published), "paper table") if arguments.paper or everything else []:
        manifest = published[name] | asked_settings(arguments)
        shown = assemble_paper(manifest, store)
        write_paper_table(shown, written, show=bool(arguments.paper) or not tasks)
        made |= make_parts("paper", [manifest], [shown], store) if place else {}
    print(try_report(store, made, place) if place else f"Nothing is written: {left_alone(arguments)}", file=sys.stderr)
    return 0


def select_names(wanted: list[str] | None, known: list[str], kind: str) -> list[str]:
    if wanted is None:
        return known
    names = {canonical(name): name for name in known}
    for name in wanted:
        if canonical(Path(name).stem) not in names:
            raise unknown_name(name, known, f"{kind} in this results folder:")
    return list(dict.fromkeys(names[canonical(Path(name).stem)] for name in wanted))


def write_tables(shown: Assembled, store: Store | None, *, show: bool) -> list[Path]:
    """Tables and statistics of one task, as Markdown, LaTeX and CSV; the tables are printed too."""
    paths = []
    if store is not None:
        paths += write_files(store.root / "tables", shown.name, shown.tables)
        paths += write_files(store.root / "tables", f"{shown.name}-statistics", shown.statistics)
        paths.append(store.root / "tables" / f"{shown.name}-runs.csv")
        write_if_other(paths[-1], runs_csv(shown.manifest, shown.columns).encode())
    if show:
        print(f"\n## {shown.title}\n\n{render.markdown(shown.tables, terminal_width())}")
        sys.stdout.flush()
    return paths


def terminal_width() -> int | None:
    """None where the output goes to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_paper_table(shown: Assembled, store: Store | None, *, show: bool) -> list[Path]:
    """A published table in its own form, its companion with the published figures, and the statistics."""
    parts: dict[str, Sequence[Table | Sheet]] = {
        "": shown.tables,
        "-published": shown.companion,
        "-statistics": shown.statistics,
    }
    if show:
        verdicts = shown.companion[0].notes[0]
        print(
            f"\n## {shown.title}\n\n{render.markdown(shown.tables, terminal_width())}\nPublished and ours: {verdicts}"
        )
        sys.stdout.flush()
    if store is None:
        return []
    folder = store.root / "paper"
    return [path for end, some in parts.items() for path in write_files(folder, f"{shown.name}{end}", some)]


def make_parts(kind: str, manifests: Iterable[dict[str, Any]], shown: Iterable[Assembled], store: Store) -> Made:
    """What a command has just shown of some manifests, for the page."""
    pairs = zip(manifests, shown, strict=True)
    return {(kind, each.name): try_part(kind, manifest, each, store) for manifest, each in pairs}


def try_part(kind: str, manifest: dict[str, Any], shown: Assembled, store: Store) -> Part | None:
    return tried(manifest, lambda: make_and_keep(kind, manifest, store, lambda: make_part(kind, shown, store)))


def read_part(kind: str, manifest: dict[str, Any], store: Store) -> Part | None:
    """Of another command, as its manifest says."""

    def make() -> Part:
        return make_part(kind, MAKERS[kind](manifest, store), store)

    return tried(manifest, lambda: kept_or_made(kind, manifest, store, make))


def tried(manifest: dict[str, Any], make: Callable[[], Part]) -> Part | None:
    """Records may be of another version, and that is no reason to fail a command whose tables are written."""
    try:
        return make()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        print(f"report: {manifest['name']} is left out, its records cannot be read ({reason})", file=sys.stderr)
        return None


def update_report(store: Store, made: Made | None = None, folder: Path | None = None) -> Path:
    """The page of the whole results folder: what a command has just shown, and the rest as its manifests say."""
    made = made or {}
    named = [("task", manifest) for manifest in store.manifests()]
    named += [("paper", manifest) for manifest in store.paper_manifests()]
    found = (
        made[kind, manifest["name"]] if (kind, manifest["name"]) in made else read_part(kind, manifest, store)
        for kind, manifest in named
    )
    return write_report([part for part in found if part is not None], folder or store.root)


def try_report(store: Store, made: Made, folder: Path | None = None) -> str:
    """Where the page is, in a line. The tables are written by now: what the page cannot show fails no command."""
    try:
        return f"Report: {update_report(store, made, folder)}"
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        return f"No report: some records of this folder cannot be shown, perhaps of another version ({reason})"


def write_files(folder: Path, name: str, tables: Sequence[Table | Sheet]) -> list[Path]:
    """One file for each form."""
    texts = {"md": render.markdown(tables), "tex": latex.document(tables, name), "csv": render.csv(tables)}
    paths = [folder / f"{name}.{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_if_other(path, text.encode())
    return paths
