"""How far each curve lies from another, seed by seed: what lines that lie upon each other do not show."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmark.columns import Column
from benchmark.stats import Array

FAR = 3.0
"""A column further off than so many times the median leaves the panel: it is told apart without it."""
ROOM = 0.06
"""Above and below what is shown, as a share of it."""


def curves_by_seed(column: Column, curve: str) -> dict[int, Array]:
    """Risks in per cent, at the coverages of a record; the oracle has no seeds."""
    found = {record.get("seed", 0): record["scores"][column.score][curve] for record in column.records}
    return {seed: 100 * np.asarray(risks, dtype=np.float64) for seed, risks in found.items()}


def differences(columns: Sequence[Column], name: str, curve: str) -> dict[str, Array]:
    """(seeds that both have, coverages), in points, of each other column from `name`; empty without it."""
    base = next((curves_by_seed(column, curve) for column in columns if column.name == name), {})
    found = {}
    for column in columns:
        pairs = [risks - base[seed] for seed, risks in curves_by_seed(column, curve).items() if seed in base]
        if pairs and column.name != name:
            found[column.name] = np.array(pairs)
    return found


def far_off(apart: Mapping[str, Array], inside: slice) -> list[str]:
    """The columns whose mean leaves the panel."""
    extents = {name: float(np.abs(found.mean(axis=0)[inside]).max()) for name, found in apart.items()}
    limit = FAR * float(np.median(list(extents.values())))
    return [name for name, found in extents.items() if found > limit]


def limits(near: Iterable[Array], inside: slice) -> tuple[float, float]:
    """From the lowest to the highest of all bands, 0 included."""
    seen = np.concatenate([found[:, inside].ravel() for found in near] + [np.zeros(1)])
    margin = ROOM * float(np.ptp(seen)) or 1.0
    return float(seen.min()) - margin, float(seen.max()) + margin
