"""Changes against a baseline, and the seeds it would take to show them, beside sums over a grid and simulations."""

from functools import cache
from math import erf, exp, inf, isnan, lgamma, log, sqrt

import numpy as np
import pytest

from benchmark.measure.statistics import MOST_SEEDS, POWER, relative_changes, seeds_for_power, t_test_power


def normal_below(x: float) -> float:
    return 0.5 * (1 + erf(x / sqrt(2)))


def power_by_sums(n: int, effect: float, edge: float) -> float:
    """P(|T| > edge), T = (Z + δ)/S, as a sum over a grid of S, the sample standard deviation in true ones."""
    freedom, shift = n - 1, effect * sqrt(n)
    constant = log(2) + freedom / 2 * log(freedom / 2) - lgamma(freedom / 2)
    step = 0.01
    total = 0.0
    for s in np.arange(step / 2, 6, step):
        density = exp(constant + (freedom - 1) * log(s) - freedom * s * s / 2)
        total += step * density * (1 - normal_below(edge * s - shift) + normal_below(-edge * s - shift))
    return total


@cache
def edge_by_sums(n: int) -> float:
    """The value that |T| exceeds in 5 % of all cases where there is nothing."""
    low, high = 0.0, 50.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if power_by_sums(n, 0.0, middle) > 0.05 else (low, middle)
    return low


def with_effect(effect: float) -> np.ndarray:
    """Two changes whose mean is so many of their standard deviations."""
    return 3.0 * (effect + np.array([-1, 1]) / sqrt(2))


def test_changes_are_counted_within_a_seed() -> None:
    base, other = {0: 2.0, 1: 4.0, 2: 0.0, 5: 1.0}, {0: 1.0, 1: 5.0, 2: 1.0, 7: 1.0}
    assert relative_changes(base, other) == {0: -50.0, 1: 25.0}, "not where the baseline has 0, or no run"
    assert relative_changes(base, base) == {0: 0.0, 1: 0.0, 5: 0.0}


@pytest.mark.parametrize(("n", "effect"), [(3, 0.0), (3, 2.0), (5, 1.3), (10, 0.5), (30, 0.5)])
def test_the_power_is_that_of_sums_over_a_grid(n: int, effect: float) -> None:
    assert t_test_power(n, effect) == pytest.approx(power_by_sums(n, effect, edge_by_sums(n)), abs=2e-4)


@pytest.mark.parametrize("effect", [0.3, 0.7, 1.1, 2.5])
def test_the_seeds_are_the_first_with_enough_power(effect: float) -> None:
    """The power rises with n, so that one less is the nearest that could do."""
    needed = int(seeds_for_power(with_effect(effect)))
    assert needed == seeds_for_power(with_effect(-effect))
    assert power_by_sums(needed, effect, edge_by_sums(needed)) >= 0.8
    assert needed == 2 or power_by_sums(needed - 1, effect, edge_by_sums(needed - 1)) < 0.8


def test_so_many_seeds_do_show_it() -> None:
    """Simulated: with as many seeds four of five repetitions are significant, with one less fewer."""
    random, effect = np.random.default_rng(0), 0.8
    needed = int(seeds_for_power(with_effect(effect)))
    shares = []
    for n in (needed - 1, needed):
        values = random.normal(effect, 1, size=(20_000, n))
        t = values.mean(1) / values.std(1, ddof=1) * sqrt(n)
        shares.append(float((np.abs(t) > edge_by_sums(n)).mean()))
    assert shares[0] < 0.81
    assert shares[1] > 0.79
    assert shares[0] < shares[1]


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ([1.0, 1.0, 1.0], 2),
        ([0.0, 0.0], inf),
        ([1.0, -1.0], inf),
        ([1e6, 1e6 + 1], 2),
        (with_effect(19).tolist(), 2),
        (with_effect(0.001).tolist(), inf),
    ],
)
def test_at_the_ends(changes: list[float], needed: float) -> None:
    assert seeds_for_power(np.array(changes)) == needed


def test_one_seed_says_nothing_of_the_spread() -> None:
    assert isnan(seeds_for_power(np.array([3.0])))
    assert isnan(seeds_for_power(np.array([])))


def test_the_power_rises_with_the_seeds_and_the_effect() -> None:
    for effect in (0.05, 0.5, 3.0, 19.0, 500.0):
        powers = [t_test_power(n, effect) for n in (2, 3, 5, 20, 300, MOST_SEEDS)]
        assert powers == sorted(powers)
        assert all(0.05 <= power <= 1 for power in powers)
    assert POWER == 0.8
