"""Explain a cell: its runs, and the test behind its marker."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tabulate import tabulate

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import match_name
from benchmark.measure.bootstrap import interval
from benchmark.measure.statistics import LEVEL, TESTS, smallest_p_for
from benchmark.store.manifest import Manifest
from benchmark.store.store import RECORD, Store, folder_of
from benchmark.tables.build import risk_rows
from benchmark.tables.columns import Column
from benchmark.tables.intervals import with_draws
from benchmark.tables.markers import FAMILIES, compare_cells, test_of
from benchmark.tables.model import Cell, Row
from benchmark.tables.modified import open_table
from benchmark.tables.sets.build import set_outlines
from benchmark.tables.sets.outline import Outline, fill_outline, over_seeds, shown_columns


def explain(manifest: Manifest, method: str, wanted: float | str, store: Store) -> str:
    """Return a page of text on the cell of a method at a coverage, or in a row of a table of an evaluation set."""
    if isinstance(wanted, float | int) and wanted not in manifest.coverages:
        manifest = replace(manifest, coverages=(wanted,))
    manifest, columns = open_table(manifest, store)
    if isinstance(wanted, str):
        manifest = over_seeds(manifest)
        outline, row = find_row(wanted, manifest, columns)
        return explain_row(outline, row, method, manifest, columns, store)
    if manifest.judged_by_images:
        columns = with_draws(manifest, columns, store)
    rows = tuple(risk_rows(manifest))
    row = next(row for row in rows if row.coverage == wanted)
    ordinary = Outline("risk", f"{manifest.title}: selective risk (%)", "coverage", rows)
    return explain_row(ordinary, row, method, manifest, columns, store)


def find_row(name: str, manifest: Manifest, columns: Sequence[Column]) -> tuple[Outline, Row]:
    """Return the row with this name, and its table. Where several have it, `TABLE: ROW` means another than the first.

    Raise UserError where no table of the set has it.
    """
    found = [(outline, row) for outline in set_outlines(manifest, columns) for row in outline.rows]
    by_name = {f"{outline.name}: {row.label}": (outline, row) for outline, row in found}
    by_name |= {row.label: (outline, row) for outline, row in reversed(found)}
    if not by_name:
        raise UserError(f"{manifest.name} has no rows with names; expected a coverage, such as 90, got {shown(name)}")
    return by_name[match_name(name, by_name, f"row of {manifest.name}:")]


def explain_row(
    outline: Outline, row: Row, method: str, manifest: Manifest, all_columns: Sequence[Column], store: Store
) -> str:
    """Return a page of text on the cell of a method in a row of a table."""
    columns, reference = shown_columns(outline, all_columns), manifest.reference
    by_name = {column.name: column for column in columns}
    name = match_name(method, by_name, f"column of {manifest.name}:")
    cells = fill_outline(outline, columns, manifest)
    cell, against = (cells.get((row.label, column)) for column in (name, reference))
    place = f"at coverage {row.label}" if outline.name == "risk" else f"in '{row.label}'"
    if cell is None or not cell.values:
        raise UserError(f"{manifest.name}: {name} has no run with a value {place}; see the table's notes")
    parts = [f"{outline.title} {place}", runs_text(by_name[name], row, cell, outline.unit)]
    if row.label in outline.undirected:
        parts.append("No value is better than another here: nothing is compared.")
    elif name == reference:
        parts.append(f"{name} is the reference: it is compared with nothing.")
    elif against is not None and against.values:
        parts.append(runs_text(by_name[reference], row, against, outline.unit))
        parts.append(test_text(manifest, name, cell, against))
    else:
        parts.append("No run of the reference is there: no comparison.")
    parts += [manifest.modified] if manifest.modified else []
    return "\n\n".join([*parts, where_text(manifest, by_name[name].at(row.coverage), store)])


def runs_text(column: Column, row: Row, cell: Cell, unit: str) -> str:
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
    grid = tabulate(lines, ["seed", unit, "job", "made by"], tablefmt="simple", disable_numparse=True)
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
    folders = (folder_of(manifest.task, record.method, record.job, record.seed) for record in column.records)
    paths = (store.find(folder, RECORD) for folder in folders)
    return "Records: " + ", ".join(dict.fromkeys(f"{path.parent.parent}/seed-<n>/{path.name}" for path in paths))
