"""Intra-class variance, the bound of Theorem 1 and the selective loss on test images, epoch by epoch."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.columns import Column
from benchmark.files import Damaged
from benchmark.learning import read_curve
from benchmark.plots.risk_coverage import MOST, choose, legend_columns
from benchmark.plots.runs import Runs
from benchmark.plots.style import DOUBLE, GREY, NotDrawn, line_look, panel_name, short_name
from benchmark.stats import Array
from benchmark.store import Store, folder_of

PANELS = {
    "intra_class_variance": ("(a) intra-class variance", "V"),
    "bound": ("(b) bound", "bound"),
    "test_selective_loss": ("(c) selective loss on test images", "L₀"),
}
"""Column of the history → name of its panel and label of its axis."""


def draw(runs: Runs) -> Figure:
    trained = [column for column in runs.judged if column.published and not column.parts and trains(column)]
    followed = {column.name: found for column in trained if (found := histories(column, runs))}
    if not followed:
        raise NotDrawn("no training followed the bound; --track-bound does")
    shown = choose([column for column in trained if column.name in followed], runs.ranked, runs.manifest["reference"])
    figure = runs.new_figure(DOUBLE, 2.3, caption(runs, shown, followed))
    for axes, (name, (title, label)) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for column in shown:
            curves = np.array([rows[name] for rows in followed[column.name]])
            draw_line(axes, curves, short_name(column.name), line_look(column, runs.manifest["reference"]))
        mark_start(axes, runs, shown)
        panel_name(axes, title)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_ylabel(label)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=legend_columns(labels), columnspacing=1.2)
    return figure


def histories(column: Column, runs: Runs) -> list[dict[str, Array]]:
    """Of each seed that followed the bound: its numbers by epoch."""
    of_task = runs.manifest["task"]
    places = [
        (folder_of(of_task, record["method"], record["job"], record["seed"]), record) for record in column.records
    ]
    found = [rows for folder, record in places if (rows := read_history(folder, record, runs.store))]
    longest = max((len(rows["bound"]) for rows in found), default=0)
    return [rows for rows in found if len(rows["bound"]) == longest]


def trains(column: Column) -> bool:
    """Whether the history is its own, and not that of a training it takes over."""
    return not column.records[0]["identity"].get("needs")


def read_history(folder: Path, record: dict[str, Any], store: Store) -> dict[str, Array]:
    """The panels' columns; empty where there is no whole history or it lacks one. Epochs without a value are NaN."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_curve(folder, record, store), newline="")))
    except Damaged:
        return {}
    if not rows or not PANELS.keys() <= rows[0].keys():
        return {}
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in PANELS}


def draw_line(axes: Axes, curves: Array, label: str, style: dict[str, Any]) -> None:
    """Mean over seeds and a light band from the smallest to the largest, at the epochs that all seeds followed."""
    epochs = np.arange(1, curves.shape[1] + 1)
    known = ~np.isnan(curves).any(axis=0)
    epochs, curves = epochs[known], curves[:, known]
    axes.plot(epochs, curves.mean(axis=0), label=label, **style)
    if len(curves) > 1:
        low, high = curves.min(axis=0), curves.max(axis=0)
        axes.fill_between(epochs, low, high, color=style["color"], alpha=0.10, linewidth=0)


def start_of(runs: Runs, shown: list[Column]) -> int:
    """Epochs of warm-up before the reference's own loss; 0 where it has none or is not shown."""
    reference = next((column for column in shown if column.name == runs.manifest["reference"]), None)
    return int(reference.records[0]["identity"]["config"].get("warmup_epochs", 0)) if reference else 0


def mark_start(axes: Axes, runs: Runs, shown: list[Column]) -> None:
    start = start_of(runs, shown)
    if start:
        axes.axvline(start, color=GREY, linewidth=0.7, linestyle=":")


def caption(runs: Runs, shown: list[Column], followed: dict[str, list[dict[str, Array]]]) -> list[str]:
    counts = sorted({len(followed[column.name]) for column in shown})
    seeds = " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
    band = "; band: smallest to largest" if counts[-1] > 1 else ""
    sentences = [
        f"{runs.manifest['title']}: seeds that followed it: {seeds}{band}. Variance and bound are of training images.",
        constants_text([record for column in shown for record in column.records]),
    ]
    if start_of(runs, shown):
        sentences.append(f"Dotted: end of the warm-up of {runs.manifest['reference']}.")
    if len(shown) < len(followed):
        sentences.append(f"Shown are {MOST} of {len(followed)} trainings.")
    return sentences


def constants_text(records: list[dict[str, Any]]) -> str:
    """The constants that the runs were followed with."""
    found = {tuple(record["bound"].items()): record["bound"] for record in records if "bound" in record}
    if len(found) != 1:
        return "The runs were followed with different constants." if found else ""
    c = next(iter(found.values()))
    return (
        f"Constants: α = {c['alpha']:g}, β = {c['beta']:g}, ρ = {c['rho']:g}, ρ′ = {c['rho_prime']:g}, "
        f"λ = {c['abstention_cost']:g}, δ = {c['delta']:g}, h = {c['threshold']:g}."
    )
