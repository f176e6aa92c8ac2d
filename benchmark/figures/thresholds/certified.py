"""Draw the certified coverage over the wanted risk, and beside it the coverage that test images alone suggest."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.base.units import counted
from benchmark.certificates.runs import CertifiedColumn, CertifiedRun
from benchmark.certificates.shown import Certified
from benchmark.figures.risk_coverage import FAINT
from benchmark.figures.style import DOUBLE, GREY, NotDrawn, draw_legend, draw_mean, line_look, new_figure, short_name
from benchmark.measure.guarantees import certify
from benchmark.measure.metrics import largest_coverage
from benchmark.measure.statistics import Array
from benchmark.tables.columns import abbreviate

MOST = 6
"""The most methods that a reader can follow with two lines each."""
POINTS = 40
"""Wanted risks at which thresholds are certified."""
MARKS = 5
DASHED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.8}


def draw(shown: Certified, *, plain: bool = False) -> Figure:
    usable = [column for column in shown.columns if column.runs]
    if not usable:
        raise NotDrawn("no run can be certified")
    chosen, risks = choose(usable, shown), wanted_risks(usable, shown)
    certified = {column.name: curves(column, risks, shown) for column in chosen}
    figure = new_figure(DOUBLE, 2.9, caption(shown, chosen, len(usable)), plain=plain)
    axes = figure.subplots()
    draw_curves(axes, 100 * risks, chosen, certified, shown)
    draw_legend(figure, axes)
    return figure


def choose(columns: Sequence[CertifiedColumn], shown: Certified) -> list[CertifiedColumn]:
    """Return the columns with the largest mean certified coverage, the reference among them."""

    def mean_coverage(column: CertifiedColumn) -> float:
        return float(np.mean([each.coverage for run in column.runs for each in run.at_risk.values()]))

    by_coverage = sorted(columns, key=lambda column: -mean_coverage(column))
    by_coverage.sort(key=lambda column: column.name != shown.manifest.reference)
    kept = by_coverage[:MOST]
    return [column for column in columns if column in kept]


def wanted_risks(columns: Sequence[CertifiedColumn], shown: Certified) -> Array:
    """Return the risks on the axis: up to the largest that is wanted, or to the error of the worst method."""
    errors = [float(run.held_out.tested.loss.mean()) for column in columns for run in column.runs]
    last = min(1.0, max(*shown.wanted.risks, 1.1 * max(errors)))
    return np.linspace(last / POINTS, last, POINTS)


def curves(column: CertifiedColumn, risks: Array, shown: Certified) -> tuple[Array, Array]:
    """Return the certified coverages and those by test images alone, in per cent, as (runs, risks)."""
    certified = [certified_curve(run, risks, shown) for run in column.runs]
    tested = [[largest_coverage(run.held_out.tested.ranked, risk) for risk in risks] for run in column.runs]
    return 100 * np.array(certified), 100 * np.array(tested)


def certified_curve(run: CertifiedRun, risks: Array, shown: Certified) -> list[float]:
    images, wanted = run.held_out.certifying, shown.wanted
    return [certify(images.confidence, images.loss, risk, wanted.delta, wanted.bound).coverage for risk in risks]


def draw_curves(
    axes: Axes, x: Array, columns: Sequence[CertifiedColumn], found: Mapping[str, tuple[Array, Array]], shown: Certified
) -> None:
    step = len(x) // MARKS
    for index, column in enumerate(columns):
        certified, tested = found[column.name]
        places = slice(round((index + 0.5) / len(columns) * step), None, step)
        look = line_look(column.column, shown.manifest.reference) | {"linestyle": "-", "markevery": places}
        draw_mean(axes, x, certified, short_name(column.name), look, FAINT / len(columns))
        axes.plot(x, tested.mean(axis=0), color=look["color"], **DASHED)
    axes.plot([], [], color=GREY, label="not certified", **DASHED)
    axes.set(xlim=(0, x[-1]), ylim=(0, 103), xlabel="selective risk at most (%)", ylabel="coverage (%)")


def caption(shown: Certified, chosen: Sequence[CertifiedColumn], usable: int) -> list[str]:
    """Return sentences that say what the lines are, and what is not shown."""
    counts = {len(column.runs) for column in chosen}
    number = " to ".join(map(str, sorted({min(counts), max(counts)})))
    lost = [column.name for column in shown.columns if not column.runs]
    return [
        f"{shown.manifest.title}: mean over runs ({number}); band: smallest to largest.",
        f"Solid: certified by held-out images, at each risk by itself, with probability {shown.chance} "
        f"({shown.wanted.bound}). Dashed: the largest coverage with that risk on the test images, which guarantees "
        "nothing.",
        *([f"{counted(more, 'more column')} left out."] if (more := usable - len(chosen)) else []),
        *([f"Not certified: {abbreviate(lost)}."] if lost else []),
    ]
