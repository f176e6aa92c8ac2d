"""Compare runs with those of a baseline that have the same seeds, and say how many seeds would show the difference."""

from collections.abc import Mapping
from math import isnan, sqrt

import numpy as np
from scipy.stats import nct, t

from benchmark.measure.statistics import LEVEL, NOISE_DECIMALS, Array

POWER = 0.8
MOST_SEEDS = 10_000
"""Nobody trains more."""
PLAIN = 20.0
"""A mean of so many standard deviations is seen with two or three seeds, whatever its exact size."""


def relative_changes(base: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """Return 100·(b/a − 1) for each seed that both have: the change in per cent. A seed with a = 0 has none."""
    return {seed: 100 * (other[seed] / base[seed] - 1) for seed in sorted(base.keys() & other.keys()) if base[seed]}


def t_test_power(n: int, effect: float) -> float:
    """Return the chance that a two-sided t test of n normal values is significant, their mean being `effect` std."""
    edge, shift = t.ppf(1 - LEVEL / 2, n - 1), min(abs(effect), PLAIN) * sqrt(n)
    beyond, opposite = float(nct.sf(edge, n - 1, shift)), float(nct.cdf(-edge, n - 1, shift))
    return beyond + (0.0 if isnan(opposite) else opposite)  # too small to be computed


def seeds_for_power(changes: Array) -> float:
    """Return the least n at which a paired t test would be significant in 80 % of all repetitions.

    The mean and the standard deviation (n − 1) of the changes are taken for the true ones. Infinite beyond MOST_SEEDS;
    NaN where fewer than two changes say nothing of their spread.
    """
    if len(changes) < 2:
        return float("nan")
    mean, std = (round(float(each), NOISE_DECIMALS) for each in (changes.mean(), changes.std(ddof=1)))
    effect = abs(mean) / std if std else np.inf if mean else 0.0
    if t_test_power(MOST_SEEDS, effect) < POWER:
        return np.inf
    low, high = 1, MOST_SEEDS  # the power rises with n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if t_test_power(middle, effect) >= POWER else (middle, high)
    return high
