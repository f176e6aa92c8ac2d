"""Collect what the risk–coverage plot shows: the rounded curves of all seeds, or points at single coverages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.measure.statistics import Array
from benchmark.tables.build import curve_of
from benchmark.tables.columns import Column
from benchmark.tables.looks import Look, column_look

STEPS = 200
"""Number of steps of coverage from 0 to 100 %."""


@dataclass(frozen=True)
class Curve:
    """One entry of the legend: a whole curve, or points only at the coverages it was trained for."""

    name: str
    values: dict[int, dict[str, float]]
    """Risk in per cent by step of coverage and seed."""
    whole: bool
    look: Look
    is_oracle: bool = False
    is_reference: bool = False

    def band(self, step: int) -> tuple[float, float, float]:
        """Return the lowest, mean and highest risk of the seeds."""
        risks = list(self.values[step].values())
        return min(risks), sum(risks) / len(risks), max(risks)

    def steps(self, first: int, last: int) -> list[int]:
        return [step for step in self.values if first <= step <= last]


def build_curves(manifest: dict[str, Any], columns: Sequence[Column]) -> list[Curve]:
    """Return the curves of all columns with a run."""
    name = curve_of(manifest)
    curves = [build_curve(column, name, column.name == manifest["reference"]) for column in columns]
    return [curve for curve in curves if curve.values]


def build_curve(column: Column, name: str, is_reference: bool) -> Curve:
    look = column_look(column)
    if column.parts:
        points = {round(2 * part.coverage): part for part in column.parts if part.coverage is not None}
        values = {step: point_values(part, name, step) for step, part in sorted(points.items())}
        trained = {step: risks for step, risks in values.items() if risks}
        return Curve(column.name, trained, False, look, is_reference=is_reference)
    runs = dict(seed_curves(column, name))
    steps = range(STEPS + 1) if runs else ()
    values = {step: {seed: curve[step] for seed, curve in runs.items()} for step in steps}
    return Curve(column.name, values, True, look, column.is_oracle, is_reference)


def seed_curves(column: Column, name: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each seed with its curve in per cent, rounded to three decimals; the oracle has no seed."""
    for record in column.records:
        curve: Array = np.asarray(record["scores"][column.score].get(name, ()), dtype=np.float64)
        if len(curve) == STEPS + 1 and np.isfinite(curve).all():
            yield str(record.get("seed", "")), np.round(100 * curve, 3).tolist()


def point_values(part: Column, name: str, step: int) -> dict[str, float]:
    return {seed: curve[step] for seed, curve in seed_curves(part, name)}


def curve_data(curve: Curve) -> dict[str, Any]:
    """Return data for the page's script: a list for each seed, or the seeds of each point."""
    if not curve.whole:
        return {"name": curve.name, "points": {str(step): seeds for step, seeds in curve.values.items()}}
    seeds = list(curve.values[0])
    curves = [[values[seed] for values in curve.values.values()] for seed in seeds]
    return {"name": curve.name, "seeds": seeds, "curves": curves}
