"""Columns → tables. A table shows exactly the runs its manifest names; what is missing shows as missing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmark.captions import KEPT, caption, is_provisional, table_notes, test_notes
from benchmark.cells import Cell, Cells, Row, Table, Value
from benchmark.columns import Column, column_notes, run_notes, single
from benchmark.earlier import with_every_run
from benchmark.errors import UserError
from benchmark.markers import mark
from benchmark.names import canonical, match_labels
from benchmark.stats import competition_ranks

ALL_SHOWN = ("markers", "second", "w/t/l", "avg. rank")
SETTINGS: dict[str, Any] = {
    "test": "exact",
    "holm": "",
    "threshold": "sort",
    "scores": [],
    "columns": [],
    "groups": [],
    "shows": ALL_SHOWN,
    "ddof": 0,
    "decimals": 2,
    "transpose": False,
}
"""What a manifest may say beyond rows and columns, with what holds where it says nothing.

`columns`: only these, in this order. `groups`: columns among which the best is sought. `shows`: parts of the table.
`ddof`: of the standard deviation. `decimals`: of percentages; other measures keep as many more. `transpose`: a row for
each method.
"""


def build_tables(manifest: dict[str, Any], columns: Sequence[Column]) -> list[Table]:
    """All tables of a task: selective risk, the posterior-expected risk where the truth is known, further measures."""
    notes = (*column_notes(columns), *run_notes(single(columns)))
    curve = curve_of(manifest)
    tables = [risk_table(manifest, columns, curve, f"Selective risk (%) on {manifest['title']}", notes)]
    if any(column.is_oracle for column in columns):
        title = f"Posterior-expected selective risk (%) on {manifest['title']}"
        what = "the mean of 1 − P(ŷ|x) over kept images, of which the oracle is the floor"
        tables.append(risk_table(manifest, columns, "expected_risk", f"{title}: {what}", ()))
    if curve == "percentile_risk":
        tables.insert(1, kept_table(manifest, columns))
    return [*tables, measures_table(manifest, columns)]


def complete(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with every setting."""
    return {**SETTINGS, **manifest}


def curve_of(manifest: dict[str, Any]) -> str:
    """What the risk curve of a score is called in the records."""
    return {"sort": "risk", "percentile": "percentile_risk"}[manifest["threshold"]]


def risk_rows(manifest: dict[str, Any], curve: str = "") -> list[Row]:
    curve = curve or curve_of(manifest)
    decimals = manifest["decimals"]
    return [Row(f"{c:g}", curve_value(curve, c), decimals=decimals, coverage=c) for c in manifest["coverages"]]


def risk_table(
    manifest: dict[str, Any], columns: Sequence[Column], curve: str, title: str, notes: tuple[str, ...]
) -> Table:
    rows = risk_rows(manifest, curve)
    cells = fill(rows, columns, manifest)
    judged = [column.name for column in columns if not column.is_oracle]
    summary = {
        "w/t/l": tuple(wins_ties_losses(rows, name, cells, manifest["reference"]) for name in judged),
        "avg. rank": average_ranks(rows, judged, cells),
    }
    padding = ("",) * (len(columns) - len(judged))
    end = " (provisional)" if is_provisional(columns) else ""
    shown = {name + end: texts + padding for name, texts in summary.items() if name in manifest["shows"]}
    ranks = {name: rank for name, rank in zip(judged, summary["avg. rank"], strict=True) if rank != "–"}
    return Table(
        name=curve.removeprefix("percentile_"),
        caption=f"{title}: {caption(manifest, cells, KEPT.get(curve, ''))}",
        corner="coverage",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in columns),
        cells=hide(cells, manifest["shows"]),
        summary=shown,
        strong=frozenset((f"avg. rank{end}", name) for name in ranks if float(ranks[name]) == lowest(ranks.values())),
        notes=(*test_notes(manifest, columns, cells), *table_notes(manifest, columns), *notes),
        transposed=manifest["transpose"],
    )


def kept_table(manifest: dict[str, Any], columns: Sequence[Column]) -> Table:
    """What the percentile rule really keeps; nothing in it is better or worse."""
    rows = risk_rows(manifest, "percentile_coverage")
    filled = {(row.label, column.name): fill_cell(row, column) for row in rows for column in columns}
    older = [
        column.name
        for column in single(columns)
        if any("percentile_coverage" not in record["scores"][column.score] for record in column.records)
    ]
    return Table(
        name="kept",
        caption=f"Coverage really kept (%) on {manifest['title']}: mean±std over the same runs.",
        corner="coverage",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in columns),
        cells={key: cell for key, cell in filled.items() if cell is not None},
        notes=(f"{', '.join(older)}: {OLDER_PERCENTILES}.",) if older else (),
        transposed=manifest["transpose"],
    )


OLDER_PERCENTILES = "older runs, ranked in float64, where nothing ties; --redo-stale makes them again"


def lowest(printed: Iterable[str]) -> float:
    return min(map(float, printed))


def curve_value(curve: str, coverage: float) -> Value:
    index = round(2 * coverage)
    return lambda record, score: record["scores"][score][curve][index] if curve in record["scores"][score] else None


MEASURES = (
    Row("AURC ×10³", lambda r, s: r["scores"][s]["aurc"], scale=1000),
    Row("E-AURC ×10³", lambda r, s: r["scores"][s]["e_aurc"], scale=1000),
    Row("expected AURC ×10³", lambda r, s: r["scores"][s].get("expected_aurc"), scale=1000),
    Row("AUGRC ×10³", lambda r, s: r["scores"][s]["augrc"], scale=1000),
    Row("AUROC (%)", lambda r, s: r["scores"][s]["auroc"], lower_is_better=False),
    Row("accuracy (%)", lambda r, s: r["classifier"]["accuracy"], lower_is_better=False),
    Row("NLL", lambda r, s: r["classifier"]["nll"], scale=1, decimals=3),
    Row("Brier", lambda r, s: r["classifier"]["brier"], scale=1, decimals=3),
    Row("ECE (%)", lambda r, s: r["classifier"]["ece"]),
)


def measures_table(manifest: dict[str, Any], columns: Sequence[Column]) -> Table:
    manifest = {**manifest, "groups": [], "shows": ("markers", "second")}
    judged = single([column for column in columns if not column.is_oracle])
    found = [row for row in MEASURES if any(run_values(row, column) for column in judged)]
    rows = [replace(row, decimals=row.decimals + manifest["decimals"] - SETTINGS["decimals"]) for row in found]
    cells = fill(rows, judged, manifest)
    return Table(
        name="measures",
        caption=f"Further measures on {manifest['title']}: {caption(manifest, cells)} Higher is better for AUROC (a"
        " right prediction is more confident than a wrong one) and accuracy, lower for the rest.",
        corner="measure",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in judged),
        cells=cells,
        notes=tuple(test_notes(manifest, judged, cells)),
        transposed=manifest["transpose"],
    )


def fill(rows: Sequence[Row], columns: Sequence[Column], manifest: dict[str, Any]) -> Cells:
    """The cells of all rows, compared with the reference column and with each other. Those that cannot be are left out.

    The oracle's are compared with nothing.
    """
    found = {
        (row.label, column.name): cell
        for row in rows
        for column in columns
        if (cell := fill_cell(row, column, manifest["ddof"])) is not None
    }
    judged = {column.name for column in columns if not column.is_oracle}
    cells = {key: cell for key, cell in found.items() if key[1] in judged}
    cells = mark(cells, rows, manifest["reference"], manifest["test"], manifest["holm"])
    for row in rows:
        for group in manifest["groups"] or [judged]:
            line = {name: cell for name in group if (cell := cells.get((row.label, name))) and cell.values}
            cells |= {(row.label, name): cell for name, cell in mark_best(line, row.lower_is_better).items()}
    return {key: cells.get(key, cell) for key, cell in found.items()}


def fill_cell(row: Row, column: Column, ddof: int = 0) -> Cell | None:
    part = column.at(row.coverage)
    values = run_values(row, part)
    unfinished = part.wanted > len(part.records) + len(part.diverged) and not part.reason
    if not values and not part.diverged and not unfinished:
        return None
    return Cell(values, part.wanted, row.decimals, diverged=len(part.diverged), ddof=ddof)


def run_values(row: Row, column: Column) -> dict[int, float]:
    """By seed, of the runs that have the number."""
    part = column.at(row.coverage)
    found = {record.get("seed", 0): row.value(record, part.score) for record in part.records}
    return {seed: value * row.scale for seed, value in found.items() if value is not None}


def mark_best(line: dict[str, Cell], lower_is_better: bool) -> dict[str, Cell]:
    """Best and second best by the printed mean; equal entries share the honour."""
    levels = sorted({float(cell.mean) for cell in line.values()}, reverse=not lower_is_better)
    return {
        name: replace(cell, best=float(cell.mean) in levels[:1], second=float(cell.mean) in levels[1:2])
        for name, cell in line.items()
    }


def hide(cells: Cells, shows: Sequence[str]) -> Cells:
    """Without the markers or the second best, where a table does not show them."""
    kept = dict(cells)
    if "markers" not in shows:
        kept = {key: replace(cell, verdict="") for key, cell in kept.items()}
    if "second" not in shows:
        kept = {key: replace(cell, second=False) for key, cell in kept.items()}
    return kept


def wins_ties_losses(rows: Sequence[Row], name: str, cells: Cells, reference: str) -> str:
    """How often the reference is significantly better / not different / worse than this column."""
    if name == reference:
        return "–"
    found = [cell for row in rows if (cell := cells.get((row.label, name))) is not None]
    verdicts = [cell.verdict for cell in found if not np.isnan(cell.p)]
    return "/".join(str(verdicts.count(kind)) for kind in ("better", "tie", "worse")) if verdicts else "–"


def average_ranks(rows: Sequence[Row], names: Sequence[str], cells: Cells) -> tuple[str, ...]:
    """Mean over the rows of each column's rank by printed mean; a dash for a column with an empty cell."""
    complete = [name for name in names if all((cell := cells.get((row.label, name))) and cell.values for row in rows)]
    if not complete:
        return ("–",) * len(names)
    ranks = [competition_ranks([float(cells[row.label, name].mean) for name in complete]) for row in rows]
    means = dict(zip(complete, np.mean(ranks, axis=0), strict=True))
    return tuple(f"{means[name]:.2f}" if name in means else "–" for name in names)


def select(
    manifest: dict[str, Any],
    labels: Sequence[str] | None,
    coverages: Sequence[float] | None,
    reference: str | None,
    published: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The manifest with other methods, coverages or another reference. Methods may be those of any command: those of
    `published` are the runs of published tables."""
    if labels:
        manifest = with_every_run(manifest, published)
    owners = {entry["label"]: entry["method"] for entry in manifest["entries"]}
    kept = match_labels(labels or ["all"], owners, f"method in the results of {manifest['task']}:")
    entries = [entry for entry in manifest["entries"] if entry["label"] in kept]
    names = [entry["label"] for entry in entries]
    chosen = pick_reference(reference, manifest["reference"], names)
    return {
        **manifest,
        "entries": entries,
        "reference": chosen,
        "coverages": list(dict.fromkeys(coverages or manifest["coverages"])),
    }


def pick_reference(wanted: str | None, default: str, labels: Sequence[str]) -> str:
    """The reference asked for; else the task's own if it takes part; else the first method."""
    if wanted is not None:
        found = [label for label in labels if canonical(label) == canonical(wanted)]
        if not found:
            raise UserError(f"--reference {wanted}: not among the methods shown ({', '.join(labels)})")
        return found[0]
    return default if default in labels else labels[0]
