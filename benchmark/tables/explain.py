"""Explain a cell: its runs, and the test behind its marker."""

from dataclasses import replace

import numpy as np
from tabulate import tabulate

from benchmark.base.errors import UserError
from benchmark.base.names import match_name
from benchmark.measure.bootstrap import interval
from benchmark.measure.statistics import LEVEL, TESTS, smallest_p_for
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store, folder_of
from benchmark.tables.build import fill, risk_rows
from benchmark.tables.columns import Column
from benchmark.tables.intervals import with_draws
from benchmark.tables.markers import FAMILIES, compare_cells, test_of
from benchmark.tables.model import Cell, Row
from benchmark.tables.modified import open_table


def explain(manifest: Manifest, method: str, coverage: float, store: Store) -> str:
    """Return a page of text on the cell of a method at a coverage."""
    if coverage not in manifest.coverages:
        manifest = replace(manifest, coverages=(coverage,))
    manifest, all_columns = open_table(manifest, store)
    if manifest.judged_by_images:
        all_columns = with_draws(manifest, all_columns, store)
    columns = [column for column in all_columns if not column.is_oracle]
    by_name = {column.name: column for column in columns}
    name = match_name(method, by_name, f"column of {manifest.name}:")
    rows = risk_rows(manifest)
    row = next(row for row in rows if row.coverage == coverage)
    cells = fill(rows, columns, manifest)
    cell, reference = cells.get((row.label, name)), manifest.reference
    if cell is None or not cell.values:
        raise UserError(f"{manifest.name}: {name} has no run with a risk at {coverage:g} %; see the table's notes")
    parts = [f"{manifest.title}: selective risk (%) at coverage {coverage:g}", runs_text(by_name[name], row, cell)]
    against = cells.get((row.label, reference))
    if name != reference and against is not None and against.values:
        parts += [runs_text(by_name[reference], row, against), test_text(manifest, name, cell, against)]
    elif name == reference:
        parts.append(f"{name} is the reference: it is compared with nothing.")
    else:
        parts.append("No run of the reference is there: no comparison.")
    parts += [manifest.modified] if manifest.modified else []
    return "\n\n".join([*parts, where_text(manifest, by_name[name].at(coverage), store)])


def runs_text(column: Column, row: Row, cell: Cell) -> str:
    part = column.at(row.coverage)
    origins = {record.seed: record.provenance.origin for record in part.records}
    jobs = {record.seed: record.job for record in part.records}
    lines = [[seed, f"{value:.6f}", jobs[seed], origins[seed]] for seed, value in cell.by_seed.items()]
    values = np.asarray(cell.values)
    spread = f", sample std {values.std(ddof=1):.4f}" if len(values) > 1 else ""
    score = f" read with {part.score}" if part.score else ""
    score += f" after epoch {part.epoch} (at_epochs in the record)" if part.epoch else ""
    shown = cell.interval_text or f"±{cell.std}"
    heading = f"{column.name}{score}: {cell.mean}{shown} {cell.missing}".rstrip()
    grid = tabulate(lines, ["seed", "risk (%)", "job", "made by"], tablefmt="simple", disable_numparse=True)
    return f"{heading} (mean {values.mean():.6f}, population std {values.std():.6f}{spread})\n{grid}"


def test_text(manifest: Manifest, name: str, cell: Cell, against: Cell) -> str:
    """Describe the test: its name, its statistic, its p and the verdict."""
    test, reference = test_of(manifest), manifest.reference
    outcome = compare_cells(test, against, cell)
    if outcome is None:
        common = "test images that can be resampled" if test == "bootstrap" else "seed"
        return f"The two methods have no {common} in common: no comparison."
    statistic = f"statistic W = {outcome.statistic:g} (rank sum of {reference} among both)"
    if test == "paired":
        pairs = f"sum of the ranks of the pairs in which {reference} is lower"
        statistic = f"statistic W = {outcome.statistic:g} ({pairs})"
    if test == "bootstrap":
        low, high = interval(cell.draws - against.draws)  # type: ignore[operator]
        statistic = (
            f"{name} minus {reference}: {outcome.statistic:.4f} on average over the draws [{low:.4f}, {high:.4f}]"
        )
    smallest = smallest_p_for(test, against.by_seed, cell.by_seed)
    lines = [
        f"{reference} against {name}: {TESTS[test]}",
        f"{statistic}, p = {outcome.p:.6f}, smallest attainable p {smallest:.6f}",
    ]
    if manifest.holm:
        lines.append(f"corrected by Holm over {FAMILIES[manifest.holm]}: p = {cell.corrected_p:.6f}")
    meaning = {"tie": "not significantly different", "better": "significantly better", "worse": "significantly worse"}
    return "\n".join([*lines, f"{reference} is {meaning[cell.verdict]} at level {LEVEL:g}."])


def where_text(manifest: Manifest, column: Column, store: Store) -> str:
    jobs = {record.job: record.method for record in column.records}
    folders = [store.root / folder_of(manifest.task, method, job, 0).parent for job, method in jobs.items()]
    return "Records: " + ", ".join(f"{folder}/seed-<n>/record.json" for folder in folders)
