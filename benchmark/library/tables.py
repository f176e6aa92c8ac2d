"""Write the tables and the report of a results folder again, from its records. Needs no torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import select_names
from benchmark.base.program import program
from benchmark.library.options import TablesOptions
from benchmark.library.registry import load_plugins
from benchmark.library.selection import select
from benchmark.library.settings import asked_settings, no_results
from benchmark.paper.assemble import MAKERS
from benchmark.report.update import Parts, make_parts, try_report
from benchmark.store.manifest import Manifest
from benchmark.store.mirror import mirrored
from benchmark.store.store import Store
from benchmark.store.version_control import left_alone, place_to_write
from benchmark.tables.assemble import Assembled
from benchmark.tables.render.write import tables_text, write_paper_table, write_tables

HERE = "in this results folder:"
WRITERS = {"task": write_tables, "paper": write_paper_table}


@dataclass(frozen=True)
class Tables:
    """Tables to be shown, and a line about what was written."""

    shown: tuple[Assembled, ...]
    remark: str

    def text(self, width: int | None = None) -> str:
        """Return the tables as text for a terminal of this width; whole for a file or another program."""
        return "".join(tables_text(each, width) for each in self.shown)


def make_tables(options: TablesOptions) -> Tables:
    """Write the tables and the page of a results folder, unless it is under version control; return the tables."""
    load_plugins(options.plugin)
    asked = asked_settings(options)
    with mirrored(options.results) as here:
        store = Store(here.folder)
        tasks = {manifest.task: manifest for manifest in store.manifests()}
        published = {manifest.name: manifest for manifest in store.paper_manifests()}
        task_names, paper_names = chosen_names(options, store.root, tasks, published)
        wanted = (options.methods, options.coverages, options.reference, [*published.values()], options.ingredients)
        selected = [select(tasks[name], *wanted) for name in task_names]
        chosen = [("task", asked.applied_to(manifest)) for manifest in selected]
        chosen += [("paper", asked.applied_to(published[name])) for name in paper_names]
        place = place_to_write(store.root, options.out)
        parts: Parts = {}
        shown = []
        for kind, manifest in chosen:
            made = MAKERS[kind](manifest, store)
            if place:
                WRITERS[kind](made, place)
                parts |= make_parts(kind, [manifest], [made], store)
            if kind == "task" or options.paper or not task_names:
                shown.append(replace(made, columns=[]))  # whose records would fill the memory
        alone = f"Nothing is written: {left_alone(store.root)}"
        here.outcome = tables = Tables(tuple(shown), try_report(store, MAKERS, parts, place) if place else alone)
    return tables


def chosen_names(
    options: TablesOptions, folder: Path, tasks: Mapping[str, Manifest], published: Mapping[str, Manifest]
) -> tuple[list[str], list[str]]:
    """Return the names of the tasks and of the published tables to show. Refuse what contradicts itself."""
    if not tasks and not published:
        raise no_results(folder)
    narrowed = [name for name in ("methods", "coverages", "reference", "scores") if getattr(options, name)]
    narrowed += ["with"] if options.ingredients else []
    if options.paper and narrowed:
        raise UserError(f"--{narrowed[0]} is for tasks; published tables have their own rows and columns: leave it out")
    if options.paper and not published:
        raise UserError(f"no published tables in '{folder}'; make some with: {program()} paper NAME")
    task_names: list[str] = []
    if options.datasets or not options.paper:
        task_names = select_names(options.datasets, list(tasks), f"task {HERE}")
    paper_names: list[str] = []
    if options.paper or not (options.datasets or narrowed):
        wanted = None if options.paper == ("all",) else options.paper
        paper_names = select_names(wanted, list(published), f"paper table {HERE}")
    return task_names, paper_names


def write_results(kind: str, manifests: Sequence[Manifest], store: Store, remark: Callable[..., str]) -> Tables:
    """Write the tables of some manifests, and the page. `remark` tells of the files, and of the page's line."""
    shown = [MAKERS[kind](manifest, store) for manifest in manifests]
    paths = [path for each in shown for path in WRITERS[kind](each, store.root)]
    report = try_report(store, MAKERS, make_parts(kind, manifests, shown, store))
    return Tables(tuple(shown), remark(paths, report))


def files_remark(paths: Sequence[Path], report: str) -> str:
    """Return what a command says of the tables it has written, and of the page."""
    tables = "\n".join(f"  {path}" for path in paths)
    return f"Tables:\n{tables}\n{report}"
