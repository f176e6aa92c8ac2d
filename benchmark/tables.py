"""Manifest + records → tables. A table shows exactly the runs its manifest names; what is missing shows as missing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmark.columns import Column, column_notes, load_columns, run_notes, single
from benchmark.errors import UserError
from benchmark.names import canonical, match_labels
from benchmark.stats import LEVEL, compare, competition_ranks, smallest_p
from benchmark.store import Store

Value = Callable[[dict[str, Any], str], float | None]
"""(record, score) → the number of one run, None where it does not exist."""


SETTINGS: dict[str, Any] = {"test": "exact", "threshold": "sort", "scores": []}
"""What a manifest may say beyond rows and columns, with what holds where it says nothing."""


@dataclass(frozen=True)
class Row:
    label: str
    value: Value
    scale: float = 100.0
    decimals: int = 2
    lower_is_better: bool = True
    coverage: float | None = None
    """In per cent, of a row of selective risks."""


@dataclass(frozen=True)
class Cell:
    """Mean and population standard deviation over the runs that are there, of those that were asked for."""

    values: tuple[float, ...]
    wanted: int
    decimals: int
    best: bool = False
    second: bool = False
    verdict: str = "tie"
    """How the reference method fares against this cell: better, worse or tie."""
    p: float = float("nan")
    diverged: int = 0
    """Runs without a value because their training diverged."""

    @property
    def mean(self) -> str:
        """As printed; ranks and best entries go by this."""
        return f"{np.mean(self.values):.{self.decimals}f}"

    @property
    def std(self) -> str:
        return f"{np.std(self.values):.{self.decimals}f}"

    @property
    def missing(self) -> str:
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        return f"({len(self.values)}/{self.wanted}{diverged})" if len(self.values) < self.wanted else ""


@dataclass(frozen=True)
class Table:
    name: str
    caption: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    summary: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows of plain text below the cells: w/t/l and average rank."""
    notes: tuple[str, ...] = ()


def build_tables(manifest: dict[str, Any], store: Store) -> list[Table]:
    """All tables of a task: selective risk, the posterior-expected risk where the truth is known, further measures."""
    manifest = {**SETTINGS, **manifest}
    columns = load_columns(manifest, store)
    remark = [f"Data: {manifest['remark']}."] if manifest.get("remark") else []
    notes = (*remark, *column_notes(columns), *run_notes(single(columns)))
    curve = {"sort": "risk", "percentile": "percentile_risk"}[manifest["threshold"]]
    tables = [risk_table(manifest, columns, curve, f"Selective risk (%) on {manifest['title']}", notes)]
    if any(column.is_oracle for column in columns):
        title = f"Posterior-expected selective risk (%) on {manifest['title']}"
        what = "the mean of 1 − P(ŷ|x) over kept images, of which the oracle is the floor"
        tables.append(risk_table(manifest, columns, "expected_risk", f"{title} ({what})", ()))
    return [*tables, measures_table(manifest, columns)]


def risk_table(
    manifest: dict[str, Any], columns: Sequence[Column], curve: str, title: str, notes: tuple[str, ...]
) -> Table:
    rows = [Row(f"{c:g}", curve_value(curve, c), coverage=c) for c in manifest["coverages"]]
    cells = fill(rows, columns, manifest)
    judged = [column.name for column in columns if not column.is_oracle]
    summary = {
        "w/t/l": tuple(wins_ties_losses(rows, name, cells, manifest["reference"]) for name in judged),
        "avg. rank": average_ranks(rows, judged, cells),
    }
    padding = ("",) * (len(columns) - len(judged))
    return Table(
        name=curve.removeprefix("percentile_"),
        caption=f"{title}: {caption(manifest, cells, KEPT.get(curve, ''))}",
        corner="coverage",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in columns),
        cells=cells,
        summary={name: texts + padding for name, texts in summary.items()},
        notes=(*test_notes(manifest, columns), *notes),
    )


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
    judged = single([column for column in columns if not column.is_oracle])
    rows = [row for row in MEASURES if any(run_values(row, column) for column in judged)]
    cells = fill(rows, judged, manifest)
    return Table(
        name="measures",
        caption=f"Further measures on {manifest['title']}: {caption(manifest, cells)} Higher is better for AUROC (a"
        " right prediction is more confident than a wrong one) and accuracy, lower for the rest.",
        corner="measure",
        rows=tuple(row.label for row in rows),
        columns=tuple(column.name for column in judged),
        cells=cells,
        notes=tuple(test_notes(manifest, judged)),
    )


def fill(rows: Iterable[Row], columns: Sequence[Column], manifest: dict[str, Any]) -> dict[tuple[str, str], Cell]:
    """The cells of all rows, compared with the reference column and with each other. Empty ones are left out."""
    cells: dict[tuple[str, str], Cell] = {}
    for row in rows:
        values = {column.name: run_values(row, column) for column in columns}
        reference = values.get(manifest["reference"], ())
        line: dict[str, Cell] = {}
        for column in columns:
            if not values[column.name] and not column.at(row.coverage).diverged:
                continue
            verdict, p = "tie", float("nan")
            if values[column.name] and column.name != manifest["reference"] and not column.is_oracle:
                verdict, p = compare(reference, values[column.name], manifest["test"], row.lower_is_better)
            part = column.at(row.coverage)
            line[column.name] = Cell(
                values[column.name], part.wanted, row.decimals, verdict=verdict, p=p, diverged=len(part.diverged)
            )
        ranked = {c.name: line[c.name] for c in columns if c.name in line and values[c.name] and not c.is_oracle}
        line |= mark_best(ranked, row.lower_is_better)
        cells |= {(row.label, name): cell for name, cell in line.items()}
    return cells


def run_values(row: Row, column: Column) -> tuple[float, ...]:
    part = column.at(row.coverage)
    found = (row.value(record, part.score) for record in part.records)
    return tuple(value * row.scale for value in found if value is not None)


def mark_best(line: dict[str, Cell], lower_is_better: bool) -> dict[str, Cell]:
    """Best and second best by the printed mean; equal entries share the honour."""
    levels = sorted({float(cell.mean) for cell in line.values()}, reverse=not lower_is_better)
    return {
        name: replace(cell, best=float(cell.mean) in levels[:1], second=float(cell.mean) in levels[1:2])
        for name, cell in line.items()
    }


def wins_ties_losses(rows: Sequence[Row], name: str, cells: dict[tuple[str, str], Cell], reference: str) -> str:
    """How often the reference is significantly better / not different / worse than this column."""
    if name == reference:
        return "–"
    verdicts = [cell.verdict for row in rows if (cell := cells.get((row.label, name))) is not None and cell.values]
    return "/".join(str(verdicts.count(kind)) for kind in ("better", "tie", "worse")) if verdicts else "–"


def average_ranks(rows: Sequence[Row], names: Sequence[str], cells: dict[tuple[str, str], Cell]) -> tuple[str, ...]:
    """Mean over the rows of each column's rank by printed mean; a dash for a column with an empty cell."""
    complete = [name for name in names if all((cell := cells.get((row.label, name))) and cell.values for row in rows)]
    if not complete:
        return ("–",) * len(names)
    ranks = [competition_ranks([float(cells[row.label, name].mean) for name in complete]) for row in rows]
    means = dict(zip(complete, np.mean(ranks, axis=0), strict=True))
    return tuple(f"{means[name]:.2f}" if name in means else "–" for name in names)


KEPT = {
    "percentile_risk": " Kept are all at or above a percentile of the confidence, more than the coverage says on ties."
}


def caption(manifest: dict[str, Any], cells: dict[tuple[str, str], Cell], kept: str = "") -> str:
    wanted = sorted({len(entry["seeds"]) for entry in manifest["entries"] if entry["seeds"]})
    seeds = " or ".join(str(n) for n in wanted) + (" seed" if wanted == [1] else " seeds")
    test = {"exact": "exact", "ranksums": "normal approximation"}[manifest["test"]]
    missing = (
        " (k/n): only k of n seeds are there, or have a value." if any(cell.missing for cell in cells.values()) else ""
    )
    return (
        f"mean±std over {seeds} (population std, ddof 0). Best bold, second underlined; •/◦: "
        f"{manifest['reference']} is significantly better/worse (two-sided Wilcoxon rank-sum test, {test}, level "
        f"{LEVEL:g}).{kept}{missing} Runs of one seed share initialisation, batches and warm-up across methods; the "
        "test ignores this, and with positive correlation it is conservative."
    )


def test_notes(manifest: dict[str, Any], columns: Sequence[Column]) -> list[str]:
    """The smallest p that the numbers of runs at hand can reach."""
    reference = next((column for column in columns if column.name == manifest["reference"]), None)
    if reference is None or not reference.records:
        return [f"No run of the reference method {manifest['reference']} is there: no comparison."]
    others = {len(c.records) for c in single(columns) if c is not reference and not c.is_oracle and c.records}
    notes = []
    for n in sorted(others):
        p = smallest_p(len(reference.records), n)
        impossible = "; no marker is possible" if p >= LEVEL else ""
        notes.append(f"Smallest attainable p, {len(reference.records)} against {n}: {p:.4f}{impossible}.")
    return notes


def select(
    manifest: dict[str, Any],
    labels: Sequence[str] | None,
    coverages: Sequence[float] | None,
    reference: str | None,
) -> dict[str, Any]:
    """The manifest narrowed to some methods, and with other coverages or another reference."""
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
