"""Compute the differences between curves, seed by seed, which overlapping lines do not show."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmark.measure.statistics import Array
from benchmark.tables.columns import Column

FAR = 3.0
"""A column further off than this many times the median may leave the panel: its difference is clear without it."""
ROOM = 0.06
"""Empty space above and below what is shown, as a share of it."""


def curves_by_seed(column: Column, curve: str) -> dict[int, Array]:
    """Return the risks in per cent by seed, at the coverages of a record; the oracle has seed 0."""
    known = ((record.seed, record.score(column.score).curve(curve)) for record in column.records)
    curves = {seed: values for seed, values in known if values is not None}
    return {seed: 100 * np.asarray(risks, dtype=np.float64) for seed, risks in curves.items()}


def differences(columns: Sequence[Column], name: str, curve: str) -> dict[str, Array]:
    """Return the risk of each other column minus that of `name`, in points, as (common seeds, coverages)."""
    base = next((curves_by_seed(column, curve) for column in columns if column.name == name), {})
    by_column = {}
    for column in columns:
        pairs = [risks - base[seed] for seed, risks in curves_by_seed(column, curve).items() if seed in base]
        if pairs and column.name != name:
            by_column[column.name] = np.array(pairs)
    return by_column


def far_off(deltas: Mapping[str, Array], inside: slice) -> list[str]:
    """Return the names of the columns whose mean leaves the panel."""
    extents = {name: float(np.abs(delta.mean(axis=0)[inside]).max()) for name, delta in deltas.items()}
    limit = FAR * float(np.median(list(extents.values())))
    return [name for name, extent in extents.items() if extent > limit]


def limits(near: Iterable[Array], inside: slice) -> tuple[float, float]:
    """Return the ends of the axis: from the lowest to the highest of all bands and 0."""
    seen = np.concatenate([delta[:, inside].ravel() for delta in near] + [np.zeros(1)])
    margin = ROOM * float(np.ptp(seen)) or 1.0
    return float(seen.min()) - margin, float(seen.max()) + margin
