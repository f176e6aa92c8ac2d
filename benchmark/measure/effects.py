"""Compute what the ingredients of a crossed grid do: main effects, interactions, and how sure n seeds can be of them.

A response is an array y with an axis for the methods, one for each factor, and the seeds last. All cells of one seed
share its split, initial weights and batches, so a seed is a block: each effect is counted within a seed, and what is
tested is that the effects of n seeds lie around 0. Also in a mean over methods there are n values, not n times the
number of methods: the effects of several methods at one seed have that seed's luck in common.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import nan

import numpy as np

from benchmark.measure.statistics import LEVEL, NOISE_DECIMALS, Array, paired_difference, seeds_needed

ZERO = "none"
"""The level that effects are counted from; a factor without it has its last level in this place."""
MOST_FLIPPED = 16
"""Up to this many seeds all 2^n signs are tried; with more, as many as these have, drawn at random."""
NOISE = 10.0**-NOISE_DECIMALS
"""Sums that differ by less are ties."""


def zero_level(levels: Sequence[str]) -> str:
    """Return the level of a factor that effects are counted from."""
    return ZERO if ZERO in levels else levels[-1]


def contrast(y: Array, axis: int, level: int, zero: int) -> Array:
    """Return y at a level − y at the zero level of one axis, which keeps the length 1."""
    return np.asarray(y.take([level], axis) - y.take([zero], axis))


def over_cells(y: Array) -> Array:
    """Return the mean over all cells, seed by seed."""
    return np.asarray(y.mean(axis=tuple(range(y.ndim - 1))), dtype=np.float64)


def main_effect(y: Array, axis: int, level: int, zero: int) -> Array:
    """Return, seed by seed, the mean of y_a − y_0 over the cells of the other axes."""
    return over_cells(contrast(y, axis, level, zero))


def interaction(y: Array, first: tuple[int, int, int], second: tuple[int, int, int]) -> Array:
    """Return, seed by seed, the mean of y_ab − y_a0 − y_0b + y_00 over the cells of the other axes.

    Each of both is an axis with a level and its zero level.
    """
    return over_cells(contrast(contrast(y, *first), *second))


def mean_with_interval(effects: Array) -> tuple[float, float]:
    """Return the mean over seeds, and the half width of its 95 % t interval: infinite with one seed."""
    difference = paired_difference(np.zeros_like(effects), effects)
    return difference.mean, difference.half_width


@lru_cache(maxsize=4)  # all effects of a table have the same few numbers of seeds
def sign_flips(n: int) -> Array:
    """Return rows of n signs, the unchanged ones first: all 2^n of them, or so many drawn with a fixed seed."""
    if n <= MOST_FLIPPED:
        return np.asarray(1.0 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1))
    signs: Array = np.random.default_rng(0).choice([-1.0, 1.0], size=(2**MOST_FLIPPED, n))
    signs[0] = 1.0
    return signs


def sign_flip_p(effects: Array) -> float:
    """Return the two-sided p that the effects of the seeds lie around 0: P(|Σ ±d| ≥ |Σ d|) over all signs.

    Ties count as at least as extreme. Exact up to MOST_FLIPPED seeds. NaN without a seed.
    """
    if not len(effects):
        return nan
    sums = np.abs(sign_flips(len(effects)) @ effects)
    return float(np.mean(sums >= sums[0] - NOISE))


def smallest_flip_p(n: int) -> float:
    """Return the smallest p that n seeds can give: all effects of one sign, 2/2^n."""
    return min(1.0, 2 * 0.5**n) if n <= MOST_FLIPPED else 0.5**MOST_FLIPPED


def smallest_flip_p_text(counts: Collection[int], comparisons: int) -> str:
    """Return sentences on the smallest p that is reachable with this many seeds, alone and with Holm's correction."""
    texts = [f"{smallest_flip_p(n):.3g} with {n} {'seed' if n == 1 else 'seeds'}" for n in sorted(set(counts))]
    needed = f"below {seeds_needed('paired')} seeds nothing can be significant"
    corrected = f"with Holm's correction over {comparisons} lines, below {seeds_needed('paired', comparisons)}"
    text = f"The smallest p that flipping signs can give is {', '.join(texts)}: {needed}"
    return f"{text}; {corrected}." if comparisons > 1 else f"{text}."


def flips_text() -> str:
    """Return how the test is called in a caption."""
    return (
        f"exact sign-flip test over seeds, two-sided, level {LEVEL:g}; beyond {MOST_FLIPPED} seeds "
        f"{2**MOST_FLIPPED:,} random signs"
    )
