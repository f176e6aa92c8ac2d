"""Make one table of several tasks from their records: what each method changes against the baseline. Needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.names import is_plain, match_name
from benchmark.library.folder_options import SummaryOptions
from benchmark.library.registry import load_plugins
from benchmark.library.selection import labels_with
from benchmark.library.settings import no_results
from benchmark.measure.labels import match_scores
from benchmark.store.manifest import Manifest, with_every_run
from benchmark.store.mirror import mirrored
from benchmark.store.store import Store
from benchmark.store.version_control import left_alone, place_to_write
from benchmark.tables import render
from benchmark.tables.build import MEASURES
from benchmark.tables.model import Sheet
from benchmark.tables.render.write import write_files
from benchmark.tables.summary.compare import Line, Regime, compare_task
from benchmark.tables.summary.sheets import WIDEST, Summary, changes_sheet, summary_sheets

ROWS = {row.measure: row for row in MEASURES}
"""The measures, by their names in records."""
Chosen = list[tuple[Manifest, str]]
"""Tasks in the order of the columns, each with the title that was asked for, if any."""


@dataclass(frozen=True)
class SummaryTables:
    """One table of several tasks and the one of the seeds it would take, and a line about what was written."""

    summary: Summary
    sheets: tuple[Sheet, ...]
    remark: str

    def text(self, width: int | None = None) -> str:
        """Return the tables as text for a terminal of this width; whole for a file or another program."""
        return render.markdown(self.sheets, width)


def summarise(options: SummaryOptions) -> SummaryTables:
    """Write the table and the figure of several tasks, unless the folder is under version control; return them."""
    load_plugins(options.plugin)
    row = ROWS[match_name(options.measure, ROWS, "measure")]
    with mirrored(options.results) as here:
        store = Store(here.folder)
        manifests = {manifest.name: manifest for manifest in store.manifests()}
        published = store.paper_manifests()
        if not manifests:
            raise no_results(store.root)
        refuse_name(options.name, [*manifests, *(manifest.name for manifest in published)])
        chosen = with_methods(chosen_tasks(options.tasks, manifests), options, published)
        scores = match_scores(options.scores or ())
        tasks = [(replace(each, scores=tuple(dict.fromkeys((*each.scores, *scores)))), title) for each, title in chosen]
        regimes = [compare_task(manifest, title, row, options.test, store) for manifest, title in tasks]
        summary = Summary(regimes, chosen_lines(options.rows, regimes), row, options.test)
        if options.short:
            refuse_wide(summary)
        sheets = [changes_sheet(summary, short=True)] if options.short else summary_sheets(summary)
        place = place_to_write(store.root, options.out)
        remark = written(summary, sheets, place, options.name) if place else left_alone(store.root)
        here.outcome = tables = SummaryTables(summary, tuple(sheets), remark)
    return tables


def refuse_name(name: str, known: Sequence[str]) -> None:
    """Raise UserError where files of this name would take the place of others, or lie elsewhere."""
    if not is_plain(name):
        raise UserError(f"--name {name}: expected a file name without a folder, such as summary")
    if name in known:
        raise UserError(f"--name {name}: the tables of this task have that name; choose another")


def chosen_tasks(wanted: Sequence[str] | None, manifests: Mapping[str, Manifest]) -> Chosen:
    """Return the tasks that are meant, in that order; all but evaluation sets where none are named."""
    if wanted is None:
        return [(manifest, "") for manifest in manifests.values() if not manifest.set_of]
    found: Chosen = []
    for text in wanted:
        name, _, title = text.partition("=")
        found.append((manifests[match_name(Path(name).stem, manifests, "task in this results folder:")], title.strip()))
    if len({manifest.name for manifest, _ in found}) < len(found):
        raise UserError("--tasks: each task can be one column; name it once")
    return found


def with_methods(tasks: Chosen, options: SummaryOptions, published: Sequence[Manifest]) -> Chosen:
    """Return the tasks with the methods that are meant, and the baseline of each.

    A task may lack some of them. A name that means nothing on any task is refused.
    """
    names = options.methods or (("all",) if options.ingredients else ())
    every = [with_every_run(manifest, published) for manifest, _ in tasks]
    kept = [set[str]() for _ in tasks] if names else [{entry.label for entry in each.entries} for each, _ in tasks]
    for name in names:
        errors = []
        for manifest, labels in zip(every, kept, strict=True):
            try:
                kind = f"method in the results of {manifest.task}:"
                labels.update(labels_with([name], options.ingredients, manifest.owners, kind))
            except UserError as error:
                errors.append(error)
        if len(errors) == len(tasks):
            raise errors[0]
    found: Chosen = []
    for (manifest, title), whole, labels in zip(tasks, every, kept, strict=True):
        shown = whole if names or manifest.baseline not in labels else manifest
        entries = tuple(entry for entry in shown.entries if entry.label in {*labels, manifest.baseline})
        found.append((replace(shown, entries=entries), title))
    return found


def chosen_lines(wanted: Sequence[str] | None, regimes: Sequence[Regime]) -> list[Line]:
    """Return the rows that are meant, in that order; all but those of the baselines where none are named."""
    bases = {regime.baseline for regime in regimes}
    lines = {line.name: line for regime in regimes for line in regime.lines if line.name not in bases}
    if wanted is None:
        return list(lines.values())
    return list({name: lines[name] for text in wanted if (name := match_name(text, lines, "row"))}.values())


def refuse_wide(summary: Summary) -> None:
    columns = len(summary.regimes) + 2
    if columns > WIDEST:
        raise UserError(
            f"--short: expected at most {WIDEST} columns, with those of the method and the time, got {columns}; "
            f"name at most {WIDEST - 2} tasks with --tasks"
        )


def written(summary: Summary, sheets: Sequence[Sheet], place: Path, name: str) -> str:
    """Write the tables and the figure, and say where they are."""
    # Only now, so that errors need not wait for matplotlib.
    from benchmark.figures.style import NotDrawn, house_style, save
    from benchmark.figures.summary import draw

    paths = write_files(place / "tables", name, sheets)
    remarks = []
    try:
        with house_style():
            paths += save(draw(summary), place / "figures", name)
    except NotDrawn as reason:
        remarks.append(f"no figure: {reason}")
    return "\n".join(["Summary:", *(f"  {path}" for path in paths), *remarks])
