"""Read results of a folder or a URL as data frames, tables and a report. What is shown is what the tables show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.files import check_folder
from benchmark.base.names import match_name
from benchmark.base.program import program
from benchmark.library.export import RunPredictions, run_predictions
from benchmark.library.options import TablesOptions
from benchmark.library.registry import load_plugins
from benchmark.library.selection import select
from benchmark.measure.metrics import CURVE_COVERAGES
from benchmark.paper.assemble import MAKERS
from benchmark.report.markup import join, tag
from benchmark.report.tables import rows_html
from benchmark.report.update import NAME, update_report
from benchmark.store.manifest import Manifest
from benchmark.store.mirror import pulled
from benchmark.store.store import Store
from benchmark.tables.assemble import all_tables
from benchmark.tables.columns import split_by_coverage
from benchmark.tables.costs import cost_tables
from benchmark.tables.intervals import with_draws
from benchmark.tables.model import Table
from benchmark.tables.modified import open_table, with_note
from benchmark.tables.render import cell_lines, markdown_table
from benchmark.tables.render.runs_csv import CURVES, column_lines, part_lines

if TYPE_CHECKING:
    from pandas import DataFrame

KEY = ("task", "method", "label", "score", "seed", "set")
TESTED = "test"
"""The images that runs are measured on."""
PER_CENT = tuple(np.round(100 * CURVE_COVERAGES, 6).tolist())


@dataclass(frozen=True)
class TableView:
    """One table of a task. It prints as Markdown, and a notebook shows it as a table."""

    table: Table

    def to_frame(self) -> "DataFrame":
        """Return a line for each cell: row, column, unrounded mean and std, runs, p, verdict on the reference."""
        from pandas import DataFrame

        return DataFrame(cell_lines(self.table))

    def __str__(self) -> str:
        """Return the caption, the table in Markdown and its notes."""
        return markdown_table(self.table)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = [tag("p", note) for note in self.table.notes]
        return join([tag("p", self.table.caption), rows_html(self.table), *notes])


@dataclass(frozen=True)
class Results:
    """The results in a folder: what the last command for each task asked for, as the tables show it."""

    store: Store
    manifests: Mapping[str, Manifest]
    """By task, which runs belong to it."""

    def __repr__(self) -> str:
        """Return the folder and its tasks."""
        return f"<results in '{self.store.root}': {', '.join(self.tasks)}>"

    @property
    def tasks(self) -> list[str]:
        """Return the names of the tasks."""
        return list(self.manifests)

    def to_frame(self) -> "DataFrame":
        """Return a line for each run and measure: task, method, label, score, seed, set, measure, value.

        `measure` is aurc, e_aurc, augrc, auroc, accuracy, nll, brier, ece, risk@90 (at the coverages of the table, in
        per cent), cost_10 (where a rejection costs 10 % of an error) and so on; values are fractions. A run that
        diverged has the measure `diverged` alone. `set` is `test` for all images together; in an evaluation set also
        the name of a part, such as `severity 3`.
        """
        from pandas import DataFrame

        frame = DataFrame(list(run_lines(self)), columns=[*KEY, "measure", "value"])
        return frame.astype({"value": "float64"})

    def curves(self) -> "DataFrame":
        """Return a line for each run and coverage from 0 to 1 in steps of 0.005: risk, and other curves that are there.

        `percentile_risk` and `percentile_coverage` follow the rule of the public codes; `expected_risk` is known where
        the true class probabilities are.
        """
        from pandas import DataFrame

        curves: dict[tuple[Any, ...], dict[str, float]] = {}
        for *key, measure, value in run_lines(self, PER_CENT):
            name, at, coverage = measure.partition("@")
            if at and name in CURVES:
                curves.setdefault((*key, float(coverage) / 100), {})[name] = value
        names = dict.fromkeys(["risk", *(name for values in curves.values() for name in values)])
        lines = [(*key, *map(values.get, names)) for key, values in curves.items()]
        return DataFrame(lines, columns=[*KEY, "coverage", *names]).astype(dict.fromkeys(names, "float64"))

    def table(
        self,
        task: str,
        name: str = "risk",
        *,
        methods: Any = None,
        coverages: Any = None,
        reference: str | None = None,
    ) -> TableView:
        """Return a table of a task: `risk` (selective), `measures` or `costs`; for some tasks also `expected_risk`.

        `methods`, `coverages` (in per cent) and `reference` replace those of the task, as in the command `tables`.
        """
        asked = TablesOptions(methods=methods, coverages=coverages, reference=reference)
        manifest = self.manifests[match_name(task, self.tasks, "task in these results:")]
        published = self.store.paper_manifests()
        chosen = select(manifest, asked.methods, asked.coverages, asked.reference, published)
        opened, columns = open_table(chosen, self.store)
        columns = with_draws(opened, columns, self.store)
        shown = [*all_tables(opened, columns), *cost_tables(opened, columns)]
        tables = {table.name: table for table in with_note(shown, opened.modified)}
        return TableView(tables[match_name(name, tables, f"table of {task}:")])

    def predictions(self, task: str | None = None) -> Iterator[RunPredictions]:
        """Yield the stored predictions of each run that is shown, as `score` takes them; `save` writes such a file.

        One run is in memory at a time. Runs whose predictions were not kept are left out. A method with a training for
        each coverage is several methods then: METHOD@90. Evaluation sets are yielded where `task` names one.
        """
        own = [name for name in self.tasks if not self.manifests[name].set_of]
        wanted = own if task is None else [match_name(task, self.tasks, "task in these results:")]
        for name in wanted:
            yield from run_predictions(self.manifests[name], self.store)

    def report(self, path: str | Path) -> Path:
        """Write the HTML report of the whole folder to a file (….html) or into another folder; return its path."""
        path = Path(path)
        folder, name = (path.parent, path.name) if path.suffix == ".html" else (path, NAME)
        check_folder(folder, "", "report(PATH)")
        return update_report(self.store, MAKERS, folder=folder, name=name)


def run_lines(results: Results, coverages: Sequence[float] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield key, measure and value of every run. Risks are those at these coverages, or at those of its table."""
    for manifest in results.manifests.values():
        opened, columns = open_table(manifest, results.store)
        opened = replace(opened, coverages=tuple(coverages) or opened.coverages)
        for column in split_by_coverage(columns):
            for *key, measure, value in () if column.is_oracle else column_lines(opened, column):
                yield *key, TESTED, measure, value
            yield from () if column.is_oracle else part_lines(opened, column)


def load_results(place: str | PathLike[str] = "results", *, plugins: Sequence[str | PathLike[str]] = ()) -> Results:
    """Return the results in a folder, or at a URL such as s3://BUCKET/FOLDER, of which a copy is kept on this disk.

    `plugins` are files of your own, for scores that they define; they are executed.
    """
    load_plugins([Path(plugin) for plugin in plugins])
    store = Store(pulled(fspath(place)))
    manifests = {manifest.task: manifest for manifest in store.manifests()}
    if not manifests and store.paper_manifests():
        raise UserError(f"'{place}' has published tables alone; read the CSV files in its folder paper/ instead")
    if not manifests:
        raise UserError(
            f"no results in '{place}'; make some with benchmark.run('digits', results='{place}'), "
            f"or: {program()} --results {place}"
        )
    return Results(store, manifests)
