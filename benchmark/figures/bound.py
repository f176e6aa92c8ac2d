"""Draw the intra-class variance, the bound of Theorem 1 and the selective loss on test images by epoch."""

import csv
import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.base.files import Damaged
from benchmark.figures.risk_coverage import MOST, choose_columns
from benchmark.figures.runs import Runs, span_text
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, draw_legend, draw_mean, line_look, panel_name, short_name
from benchmark.measure.statistics import Array
from benchmark.store.curves import read_curve
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of
from benchmark.tables.columns import Column

PANELS = {
    "intra_class_variance": ("(a) intra-class variance", "V"),
    "bound": ("(b) bound", "bound"),
    "test_selective_loss": ("(c) selective loss on test images", "L₀"),
}
"""Column of the history → name of its panel and label of its axis."""


def draw(runs: Runs) -> Figure:
    published = [column for column in runs.judged if column.published and not column.parts]
    # The history of a column that takes over a training is not its own.
    trained = [column for column in published if not column.records[0].is_combined]
    tracked = {column.name: rows for column in trained if (rows := histories(column, runs))}
    if not tracked:
        raise NotDrawn("no training followed the bound; --track-bound does")
    reference = runs.manifest.reference
    shown = choose_columns([column for column in trained if column.name in tracked], runs.ranked, reference)
    figure = runs.new_figure(DOUBLE, 2.3, caption(runs, shown, tracked))
    end = warmup_end(runs, shown)
    for axes, (name, (title, label)) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for column in shown:
            curves = np.array([rows[name] for rows in tracked[column.name]])
            known = ~np.isnan(curves).any(axis=0)
            epochs = np.flatnonzero(known) + 1
            draw_mean(axes, epochs, curves[:, known], short_name(column.name), line_look(column, reference), 0.10)
        if end:
            axes.axvline(end, color=GREY, linewidth=0.7, linestyle=":")
        panel_name(axes, title)
        axes.set(xlabel="epoch", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    draw_legend(figure, figure.axes[0])
    return figure


def histories(column: Column, runs: Runs) -> list[dict[str, Array]]:
    """Return the numbers by epoch of each seed that tracked the bound; shorter histories are left out."""
    complete = []
    for record in column.records:
        folder = folder_of(runs.manifest.task, record.method, record.job, record.seed)
        if rows := read_history(folder, record, runs.store):
            complete.append(rows)
    longest = max((len(rows["bound"]) for rows in complete), default=0)
    return [rows for rows in complete if len(rows["bound"]) == longest]


def read_history(folder: Path, record: Record, store: Store) -> dict[str, Array]:
    """Return the columns of the panels, NaN where an epoch has no value; nothing if one is missing or damaged."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_curve(folder, record, store), newline="")))
    except Damaged:
        return {}
    if not rows or not PANELS.keys() <= rows[0].keys():
        return {}
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in PANELS}


def warmup_end(runs: Runs, shown: list[Column]) -> int:
    """Return the number of warm-up epochs of the reference; 0 if it has none or is not shown."""
    reference = next((column for column in shown if column.name == runs.manifest.reference), None)
    return int(reference.records[0].settings.get("warmup_epochs", 0)) if reference else 0


def caption(runs: Runs, shown: list[Column], tracked: dict[str, list[dict[str, Array]]]) -> list[str]:
    counts = {len(tracked[column.name]) for column in shown}
    band = "; band: smallest to largest" if max(counts) > 1 else ""
    title, reference = runs.manifest.title, runs.manifest.reference
    return [
        f"{title}: seeds that followed it: {span_text(counts)}{band}. Variance and bound are of training images.",
        constants_text([record for column in shown for record in column.records]),
        *([f"Dotted: end of the warm-up of {reference}."] if warmup_end(runs, shown) else []),
        *([f"Shown are {MOST} of {len(tracked)} trainings."] if len(shown) < len(tracked) else []),
    ]


def constants_text(records: list[Record]) -> str:
    """Return a sentence with the constants that the runs tracked the bound with."""
    constants = {tuple(bound.items()): bound for record in records if (bound := record.bound) is not None}
    if len(constants) != 1:
        return "The runs were followed with different constants." if constants else ""
    c = next(iter(constants.values()))
    return (
        f"Constants: α = {c['alpha']:g}, β = {c['beta']:g}, ρ = {c['rho']:g}, ρ′ = {c['rho_prime']:g}, "
        f"λ = {c['abstention_cost']:g}, δ = {c['delta']:g}, h = {c['threshold']:g}."
    )
