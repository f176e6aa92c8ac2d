"""Collect what the risk–coverage plot shows: the rounded curves of all seeds, or points at single coverages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.measure.statistics import Array
from benchmark.store.manifest import Manifest
from benchmark.tables.build import curve_of
from benchmark.tables.columns import Column

STEPS = 200
"""Number of steps of coverage from 0 to 100 %."""


@dataclass(frozen=True)
class Curve:
    """One entry of the legend: a whole curve, or, for a column in parts, points at the coverages of its trainings."""

    column: Column
    values: dict[int, dict[str, float]]
    """Risk in per cent by step of coverage and seed."""
    is_reference: bool

    def band(self, step: int) -> tuple[float, float, float]:
        """Return the lowest, mean and highest risk of the seeds."""
        risks = list(self.values[step].values())
        return min(risks), sum(risks) / len(risks), max(risks)

    def steps(self, first: float, last: float) -> list[int]:
        return [step for step in self.values if first <= step <= last]


def build_curves(manifest: Manifest, columns: Sequence[Column]) -> list[Curve]:
    """Return the curves of all columns with a run."""
    name, reference = curve_of(manifest), manifest.reference
    curves = [Curve(column, curve_values(column, name), column.name == reference) for column in columns]
    return [curve for curve in curves if curve.values]


def curve_values(column: Column, name: str) -> dict[int, dict[str, float]]:
    """Return the risk in per cent by step of coverage and seed."""
    if column.parts:
        points = {round(2 * part.coverage): part for part in column.parts if part.coverage is not None}
        values = {step: point_values(part, name, step) for step, part in sorted(points.items())}
        return {step: risks for step, risks in values.items() if risks}
    runs = dict(seed_curves(column, name))
    return {step: {seed: curve[step] for seed, curve in runs.items()} for step in range(STEPS + 1) if runs}


def seed_curves(column: Column, name: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each seed with its curve in per cent, rounded to three decimals; the oracle has no seed."""
    for record in column.records:
        curve: Array = np.asarray(record.score(column.score).curve(name) or (), dtype=np.float64)
        if len(curve) == STEPS + 1 and np.isfinite(curve).all():
            yield "" if column.is_oracle else str(record.seed), np.round(100 * curve, 3).tolist()


def point_values(part: Column, name: str, step: int) -> dict[str, float]:
    return {seed: curve[step] for seed, curve in seed_curves(part, name)}


def curve_data(curve: Curve) -> dict[str, Any]:
    """Return data for the page's script: a list for each seed, or the seeds of each point."""
    name, steps = curve.column.name, curve.values
    if curve.column.parts:
        return {"name": name, "points": {str(step): seeds for step, seeds in steps.items()}}
    seeds = list(steps[0])
    return {"name": name, "seeds": seeds, "curves": [[risks[seed] for risks in steps.values()] for seed in seeds]}
