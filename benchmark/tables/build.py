"""Build tables from columns. A table shows exactly the runs of its manifest; a missing run is shown as missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.names import canonical
from benchmark.measure.evaluate import RISKS
from benchmark.measure.statistics import competition_ranks
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.tables.captions import KEPT, caption, is_provisional, measures_text, table_notes, test_notes
from benchmark.tables.columns import Column, abbreviate, column_notes, run_notes, split_by_coverage
from benchmark.tables.markers import mark, test_of
from benchmark.tables.model import Cell, Cells, Row, Table, Value


def build_tables(manifest: Manifest, columns: Sequence[Column]) -> list[Table]:
    """Return all tables of a task: selective risk, expected risk where the true posterior is known, other measures."""
    notes = [*column_notes(columns), *run_notes(split_by_coverage(columns))]
    curve = curve_of(manifest)
    tables = [risk_table(manifest, columns, curve, f"Selective risk (%) on {manifest.title}", notes)]
    if any(column.is_oracle for column in columns):
        title = expected_title(manifest, columns)
        tables.append(risk_table(manifest, columns, "expected_risk", title, ()))
    if curve == "percentile_risk":
        tables.insert(1, kept_table(manifest, columns))
    return [*tables, measures_table(manifest, columns)]


def expected_title(manifest: Manifest, columns: Sequence[Column]) -> str:
    """Return the title of the table of expected risks: the true probabilities are known, or shares of people."""
    sets = (record.evaluation for column in columns for record in column.records)
    if any(each is not None and each.kind == "humans" for each in sets):
        return (
            f"Expected selective risk (%) on {manifest.title}: the share of people who would disagree with the "
            "prediction, in the mean over kept images; the oracle, the ranking by the largest share, is the floor"
        )
    what = "the mean of 1 − P(ŷ|x) over kept images, of which the oracle is the floor"
    return f"Posterior-expected selective risk (%) on {manifest.title}: {what}"


def curve_of(manifest: Manifest) -> str:
    """Return the name of the risk curve in the records."""
    return {"sort": "risk", "percentile": "percentile_risk"}[manifest.threshold]


def risk_rows(manifest: Manifest, curve: str = "") -> list[Row]:
    curve = curve or curve_of(manifest)
    decimals = manifest.decimals
    return [
        Row(f"{c:g}", curve_value(curve, c), decimals=decimals, coverage=c, measure=curve) for c in manifest.coverages
    ]


def risk_table(manifest: Manifest, columns: Sequence[Column], curve: str, title: str, notes: Sequence[str]) -> Table:
    """Return the table of one risk curve, with w/t/l and average ranks below it."""
    rows = risk_rows(manifest, curve)
    cells = fill(rows, columns, manifest)
    summary, strong = summary_of(rows, columns, cells, manifest)
    return Table(
        name=curve.removeprefix("percentile_"),
        caption=f"{title}: {caption(manifest, cells, KEPT.get(curve, ''))}",
        corner="coverage",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in columns),
        cells=hide_parts(cells, manifest.shows),
        summary=summary,
        strong=strong,
        notes=(
            *test_notes(manifest, columns, cells),
            *table_notes(manifest, columns),
            *unknown_notes(rows, columns),
            *notes,
        ),
        transposed=manifest.transpose,
    )


def summary_of(
    rows: Sequence[Row], columns: Sequence[Column], cells: Cells, manifest: Manifest
) -> tuple[dict[str, tuple[str, ...]], frozenset[tuple[str, str]]]:
    """Return w/t/l and average ranks, as far as the table shows them, and which of them are the best."""
    judged = [column.name for column in columns if not column.is_oracle]
    summary = {
        "w/t/l": tuple(wins_ties_losses(rows, name, cells, manifest.reference) for name in judged),
        "avg. rank": average_ranks(rows, judged, cells),
    }
    padding = ("",) * (len(columns) - len(judged))
    end = " (provisional)" if is_provisional(columns) else ""
    shown = {name + end: texts + padding for name, texts in summary.items() if name in manifest.shows}
    ranks = {name: float(rank) for name, rank in zip(judged, summary["avg. rank"], strict=True) if rank != "–"}
    best = [name for name, rank in ranks.items() if rank == min(ranks.values())]
    return shown, frozenset((f"avg. rank{end}", name) for name in best)


def kept_table(manifest: Manifest, columns: Sequence[Column]) -> Table:
    """Return a table of the coverages that the percentile rule really keeps. None of them is better than another."""
    rows = risk_rows(manifest, "percentile_coverage")
    filled = {(row.label, column.name): fill_cell(row, column) for row in rows for column in columns}
    return Table(
        name="kept",
        caption=f"Coverage really kept (%) on {manifest.title}: mean±std over the same runs.",
        corner="coverage",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in columns),
        cells={key: cell for key, cell in filled.items() if cell is not None},
        notes=tuple(unknown_notes(rows, columns)),
        transposed=manifest.transpose,
    )


def curve_value(curve: str, coverage: float) -> Value:
    index = round(2 * coverage)

    def value(record: Record, score: str) -> float | None:
        values = record.score(score).curve(curve)
        return None if values is None else values[index]

    return value


def coverage_row(risk: int) -> Row:
    name = f"coverage_at_risk_{risk}"
    return Row(f"SAC{100 - risk} (%)", lambda r, s: vars(r.score(s))[name], lower_is_better=False, measure=name)


MEASURES = (
    Row("AURC ×10³", lambda r, s: r.score(s).aurc, scale=1000, measure="aurc"),
    Row("E-AURC ×10³", lambda r, s: r.score(s).e_aurc, scale=1000, measure="e_aurc"),
    Row("NAURC", lambda r, s: r.score(s).naurc, scale=1, decimals=3, measure="naurc"),
    Row("expected AURC ×10³", lambda r, s: r.score(s).expected_aurc, scale=1000, measure="expected_aurc"),
    Row("AUGRC ×10³", lambda r, s: r.score(s).augrc, scale=1000, measure="augrc"),
    Row("AUROC (%)", lambda r, s: r.score(s).auroc, lower_is_better=False, measure="auroc"),
    Row("AUPR (%)", lambda r, s: r.score(s).aupr, lower_is_better=False, measure="aupr"),
    Row("FPR95 (%)", lambda r, s: r.score(s).fpr95, measure="fpr95"),
    *(coverage_row(risk) for risk in RISKS),
    Row("accuracy (%)", lambda r, s: r.measures.classifier.accuracy, lower_is_better=False, measure="accuracy"),
    Row("NLL", lambda r, s: r.measures.classifier.nll, scale=1, decimals=3, measure="nll"),
    Row("Brier", lambda r, s: r.measures.classifier.brier, scale=1, decimals=3, measure="brier"),
    Row("ECE (%)", lambda r, s: r.measures.classifier.ece, measure="ece"),
)


def measures_table(manifest: Manifest, columns: Sequence[Column]) -> Table:
    """Return the table of all measures but the risks: areas under curves, accuracy and calibration."""
    judged = split_by_coverage([column for column in columns if not column.is_oracle])
    more = manifest.decimals - Manifest.decimals
    rows = [replace(row, decimals=row.decimals + more) for row in MEASURES]
    return further_table(manifest, judged, rows, Headings("measures", "Further measures", "measure", measures_text))


@dataclass(frozen=True)
class Headings:
    """What a table is called, and how to read the rows that it shows."""

    name: str
    title: str
    corner: str
    text: Callable[[Sequence[Row]], str]


def further_table(manifest: Manifest, columns: Sequence[Column], rows: Sequence[Row], headings: Headings) -> Table:
    """Return a table beside the risks. Rows without a value are left out, and a note says why they have none."""
    manifest = replace(manifest, groups=(), shows=("markers", "second"))
    shown = [row for row in rows if any(run_values(row, column) for column in columns)]
    cells = fill(shown, columns, manifest)
    judged = [column for column in columns if not column.is_oracle]
    return Table(
        name=headings.name,
        caption=f"{headings.title} on {manifest.title}: {caption(manifest, cells)} {headings.text(shown)}",
        corner=headings.corner,
        rows=tuple(row.label for row in shown),
        columns=tuple(column.name for column in columns),
        cells=cells,
        notes=(*test_notes(manifest, judged, cells), *unknown_notes(rows, columns)),
        transposed=manifest.transpose,
    )


def fill(rows: Sequence[Row], columns: Sequence[Column], manifest: Manifest) -> Cells:
    """Return the cells of all rows, each compared with the reference and with its row; the oracle's are not compared.

    A cell without a run, finished or still to come, is left out.
    """
    drawn = manifest.judged_by_images
    filled = {(row.label, c.name): fill_cell(row, c, manifest.ddof, drawn=drawn) for row in rows for c in columns}
    all_cells = {key: cell for key, cell in filled.items() if cell is not None}
    judged = {column.name for column in columns if not column.is_oracle}
    cells = {key: cell for key, cell in all_cells.items() if key[1] in judged}
    cells = mark(cells, rows, manifest.reference, test_of(manifest), manifest.holm)
    for row in rows:
        for group in manifest.groups or [judged]:
            line = {name: cell for name in group if (cell := cells.get((row.label, name))) and cell.values}
            cells |= {(row.label, name): cell for name, cell in mark_best(line, row.lower_is_better).items()}
    return all_cells | cells


def fill_cell(row: Row, column: Column, ddof: int = 0, *, drawn: bool = False) -> Cell | None:
    """Return the cell of a row and a column, with its draws if asked; None where no run is there or still to come."""
    part = column.at(row.coverage)
    values = run_values(row, part)
    unfinished = part.wanted > len(part.records) + len(part.diverged) and not part.reason
    if not values and not part.diverged and not unfinished:
        return None
    draws = part.draws.get(row.key) if drawn else None
    scaled = None if draws is None else draws * row.scale
    return Cell(values, part.wanted, row.decimals, diverged=len(part.diverged), ddof=ddof, draws=scaled)


def run_values(row: Row, column: Column) -> dict[int, float]:
    """Return the values of a row in one column, by seed, of the runs that have one."""
    part = column.at(row.coverage)
    values = {record.seed: row.value(record, part.score) for record in part.records}
    return {seed: value * row.scale for seed, value in values.items() if value is not None}


def reasons(row: Row, column: Column) -> list[str]:
    """Return why runs of a column have no value in a row, each reason once."""
    part = column.at(row.coverage)
    found = (record.reasons.get(part.score, record.reasons.get(row.measure)) for record in part.records)
    return list(dict.fromkeys(filter(None, found)))


def unknown_notes(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Return notes on rows without a value: other code measured the runs, and their predictions are gone."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in rows:
        for column in columns:
            for why in reasons(row, column):
                names, labels = found.setdefault(why, ({}, {}))
                names[column.name] = labels[row.label] = None
    return [
        f"{abbreviate(list(names))}: {abbreviate(list(labels))} cannot be measured: {why}."
        for why, (names, labels) in found.items()
    ]


def mark_best(line: dict[str, Cell], lower_is_better: bool) -> dict[str, Cell]:
    """Mark the best and the second best by the printed mean; equal cells get the same mark."""
    levels = sorted({float(cell.mean) for cell in line.values()}, reverse=not lower_is_better)
    return {
        name: replace(cell, best=float(cell.mean) in levels[:1], second=float(cell.mean) in levels[1:2])
        for name, cell in line.items()
    }


def hide_parts(cells: Cells, shows: Sequence[str]) -> Cells:
    """Remove the markers or the second best, if the table does not show them."""
    if "markers" not in shows:
        cells = {key: replace(cell, verdict="") for key, cell in cells.items()}
    if "second" not in shows:
        cells = {key: replace(cell, second=False) for key, cell in cells.items()}
    return cells


def wins_ties_losses(rows: Sequence[Row], name: str, cells: Cells, reference: str) -> str:
    """Count how often the reference is significantly better / not different / worse than this column."""
    if name == reference:
        return "–"
    shown = [cell for row in rows if (cell := cells.get((row.label, name))) is not None]
    verdicts = [cell.verdict for cell in shown if not np.isnan(cell.p)]
    return "/".join(str(verdicts.count(kind)) for kind in ("better", "tie", "worse")) if verdicts else "–"


def complete_columns(rows: Sequence[Row], names: Sequence[str], cells: Cells) -> list[str]:
    """Return the columns that have a value in every row."""
    return [name for name in names if all((cell := cells.get((row.label, name))) and cell.values for row in rows)]


def average_ranks(rows: Sequence[Row], names: Sequence[str], cells: Cells) -> tuple[str, ...]:
    """Return each column's rank by printed mean, averaged over the rows; a dash for a column with an empty cell."""
    complete = complete_columns(rows, names, cells)
    if not complete:
        return ("–",) * len(names)
    ranks = [competition_ranks([row.sign * float(cells[row.label, name].mean) for name in complete]) for row in rows]
    means = dict(zip(complete, np.mean(ranks, axis=0), strict=True))
    return tuple(f"{means[name]:.2f}" if name in means else "–" for name in names)


def pick_reference(wanted: str | None, default: str, labels: Sequence[str]) -> str:
    """Return the wanted reference; else the task's own, if it is shown; else the first method."""
    if wanted is None:
        return default if default in labels else labels[0]
    for label in labels:
        if canonical(label) == canonical(wanted):
            return label
    raise UserError(f"--reference {wanted}: not among the methods shown ({', '.join(labels)})")
