"""Draw learning curves as far as they go: a small plot for the loss, the accuracy, and all that methods watch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from benchmark.base.files import Damaged
from benchmark.live.journal import Progress
from benchmark.report.curves import Curve
from benchmark.report.health import COMMON, runs_of
from benchmark.report.markup import Markup, tag
from benchmark.report.parts import files_of
from benchmark.report.plot import FEW, View, dash_of, legend_entry, ticks, x_axis, y_axis
from benchmark.report.sets.panels import SMALL, line, points, small_view
from benchmark.store.curves import read_curve, rows_of
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.columns import Column

Rows = Sequence[Mapping[str, float]]
Runs = dict[str, dict[int, Rows]]
"""Learning curves by name and seed."""
MOST_PLOTS = 40
NOTE = "By epoch. Loss and accuracy are of the training images, then comes what a method watches of itself. "
NOTE += "Lines: mean over seeds; bands: from the lowest to the highest seed."


@dataclass
class KnownCurves:
    """The learning curves of a results folder. Those of finished runs are read once."""

    store: Store
    read: dict[Path, tuple[object, Rows]] = field(default_factory=dict)

    def by_task(self, manifests: Iterable[Manifest], commands: Iterable[Progress]) -> dict[str, Runs]:
        """Return the curves of all runs that tables show, and of those that commands train now."""
        found: dict[str, Runs] = {}
        named = {}
        for manifest in manifests:
            for name, seed, folder in runs_of(manifest):
                named[folder.as_posix()] = name
                if rows := self.of_run(folder):
                    found.setdefault(manifest.name, {}).setdefault(name, {})[seed] = rows
        for job in (job for progress in commands for job in progress.jobs):
            name = named.get(job.facts.folder, job.facts.label)
            seeds = found.setdefault(job.facts.task, {}).setdefault(name, {}) if job.rows else {}
            seeds.setdefault(job.facts.seed, job.rows)
        return found

    def of_run(self, folder: Path) -> Rows:
        """Return the learning curve of a finished run; empty for any other."""
        stamp = files_of(self.store.root / folder)
        if self.read.get(folder, (None,))[0] != stamp:
            self.read[folder] = (stamp, self.rows(folder))
        return self.read[folder][1]

    def rows(self, folder: Path) -> Rows:
        record = self.store.read_record(folder)
        try:
            return [] if record is None else rows_of(read_curve(folder, record, self.store))
        except Damaged:
            return []


def curves_figure(task: str, runs: Runs, *, is_open: bool) -> Markup:
    """Return the small plots of a task with one legend for all. The reader can fold them away."""
    legend = [Curve(Column(name, "", (), len(seeds)), {}, is_reference=False) for name, seeds in runs.items()]
    keys = dict.fromkeys(key for seeds in runs.values() for rows in seeds.values() for row in rows for key in row)
    measured = sorted((key for key in keys if key != "epoch"), key=lambda key: key not in COMMON)
    plots = [plot for key in measured[:MOST_PLOTS] if (plot := curve_plot(key, runs, legend))]
    names = tag("ul", (legend_entry(curve, index) for index, curve in enumerate(legend)), class_="legend")
    block = tag("div", tag("div", plots, class_="multiples"), class_="block")
    figure = tag("div", names, block, tag("p", NOTE, class_="note"), class_="plot sets crowded")
    return tag("details", tag("summary", f"Learning curves of {task}"), figure, open=is_open)


def curve_plot(key: str, runs: Runs, legend: Sequence[Curve]) -> Markup | None:
    """Return the plot of one measure by epoch; None where nothing can be drawn."""
    curves = {entry: Curve(of.column, by_epoch(runs[of.column.name], key), False) for entry, of in enumerate(legend)}
    known = {entry: curve for entry, curve in curves.items() if curve.values}
    if not known:
        return None
    last = max(2, *(step for curve in known.values() for step in curve.values))
    view = view_of([curve.band(step) for curve in known.values() for step in curve.values], last)
    marks: dict[float, str] = {mark: f"{mark:g}" for mark in ticks(1, last) if mark == round(mark)}
    axes = [*x_axis(view, marks, "epoch"), *y_axis(view, "")]
    data: dict[str, Any] = {
        "lines": [points(curve, entry) for entry, curve in known.items()],
        "places": [f"epoch {epoch}" for epoch in range(last + 1)],
    }
    lines = [line(curve, entry, view, dash_of(curve)) for entry, curve in known.items()]
    return small_view(key.replace("_", " "), view, axes, lines, data, many=len(lines) > FEW)


def by_epoch(seeds: Mapping[int, Rows], key: str) -> dict[int, dict[str, float]]:
    """Return the finite values of one measure by epoch, counted from 1, and seed."""
    values: dict[int, dict[str, float]] = {}
    for seed, rows in seeds.items():
        for row in rows:
            if "epoch" in row and isfinite(row.get(key, float("nan"))):
                values.setdefault(round(row["epoch"]) + 1, {})[str(seed)] = float(f"{row[key]:.4g}")
    return dict(sorted(values.items()))


def view_of(bands: Sequence[tuple[float, float, float]], last: int) -> View:
    """Return a view that shows all values."""
    low, top = min(low for low, *_ in bands), max(high for *_, high in bands)
    room = 0.05 * (top - low) or 0.05 * abs(top) or 1.0
    return View("", 1, last, top + room, SMALL, min(low - room, 0.0) if low < 0 else max(low - room, 0.0))
