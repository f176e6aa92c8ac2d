"""Compute statistics over seeds: the tests behind the markers, the smallest p they can reach, and intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from math import comb, inf, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import nct, rankdata, ranksums, t, ttest_ind_from_stats

LEVEL = 0.05
LEAST_SEEDS = 5
"""Below this nothing is concluded from resampled seeds or a t interval: four seeds have 35 different draws."""
DRAWS = 10_000
"""How often test images are resampled."""
NOISE_DECIMALS = 9
"""Values that differ only by the noise of floating-point sums are ties."""
POWER = 0.8
MOST_SEEDS = 10_000
"""Nobody trains more."""
PLAIN = 20.0
"""A mean of so many standard deviations is seen with two or three seeds, whatever its exact size."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The result of a two-sided test of one sample against another."""

    p: float
    statistic: float
    """Rank sum of the first sample; in a paired test, of the differences in which it lies lower."""
    direction: float
    """Above 0 where the first sample lies lower, below 0 where it lies higher."""


def exact_rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p of the rank-sum of `a` over all splits of the pooled values, ties by mid-ranks."""
    ranks = np.rint(2 * rankdata([*a, *b])).astype(np.int64)
    return rank_sum_p(tuple(sorted(ranks.tolist())), len(a), int(ranks[: len(a)].sum()))


@lru_cache(maxsize=2000)  # statistics and page ask for the cells of the table again
def rank_sum_p(doubled_ranks: tuple[int, ...], n: int, observed: int) -> float:
    return two_sided(rank_sum_ways(doubled_ranks, n), observed)


@lru_cache(maxsize=16)  # without ties all cells of a table share the outcome
def rank_sum_ways(doubled_ranks: tuple[int, ...], n: int) -> Array:
    """Count the subsets of n ranks by their sum: exact with and without ties, for any number of values."""
    counts: Array = np.zeros((n + 1, sum(doubled_ranks) + 1))
    counts[0, 0] = 1
    reached = 0
    for size, rank in enumerate(doubled_ranks, start=1):
        reached += rank
        least, most = max(1, n - len(doubled_ranks) + size), min(n, size)  # no other subset exists and can grow to n
        counts[least : most + 1, rank : reached + 1] += counts[least - 1 : most, : reached + 1 - rank].copy()
    return np.array(counts[n])  # a view would keep all sizes in memory


def normal_rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return p by the normal approximation without continuity or tie correction (scipy's `ranksums`)."""
    return float(ranksums(a, b).pvalue)


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the two-sided exact p of Wilcoxon's signed-rank test: all signs, ties by mid-ranks, zeros left out."""
    nonzero = np.asarray([d for d in differences if d])
    ranks = np.rint(2 * rankdata(np.abs(nonzero))).astype(np.int64)
    counts = np.zeros(ranks.sum() + 1)
    counts[0] = 1
    for rank in ranks:
        counts[rank:] += counts[: len(counts) - rank].copy()
    return two_sided(counts, ranks[nonzero > 0].sum())


def two_sided(ways: Array, observed: int) -> float:
    """Return the smaller tail twice, from the number of ways to reach each value."""
    tail = min(ways[: observed + 1].sum(), ways[observed:].sum()) / ways.sum()
    return float(min(1.0, 2 * tail))


def sign_test_p(lower: int, higher: int) -> float:
    """Return the two-sided exact p of the sign test; nan without a difference."""
    n = lower + higher
    return two_sided(np.array([float(comb(n, k)) for k in range(n + 1)]), lower) if n else nan


def signed_rank(a: Array, b: Array) -> Outcome:
    """Run Wilcoxon's signed-rank test on paired values."""
    differences = np.round(b - a, NOISE_DECIMALS)
    nonzero = differences[differences != 0]
    ranks, signs = rankdata(np.abs(nonzero)), np.sign(nonzero)
    return Outcome(signed_rank_p(list(differences)), float(ranks[signs > 0].sum()), float((ranks * signs).sum()))


OVER_SEEDS = {
    "exact": "two-sided Wilcoxon rank-sum test, exact",
    "ranksums": "two-sided Wilcoxon rank-sum test, normal approximation",
    "paired": "two-sided Wilcoxon signed-rank test over seeds, exact",
}
"""The tests of runs by name, as a caption calls them."""
TESTS = OVER_SEEDS | {"bootstrap": "two-sided paired bootstrap test over the same test images"}
"""All tests: the last one is of test images, see `bootstrap.py`."""


def run_test(test: str, reference: Mapping[int, float], other: Mapping[int, float]) -> Outcome | None:
    """Run the named test on values by seed; return None where there is nothing to compare."""
    if test == "paired":
        a, b = paired(reference, other)
        return signed_rank(a, b) if len(a) else None
    if not reference or not other:
        return None
    p_value = {"exact": exact_rank_sum_p, "ranksums": normal_rank_sum_p}[test]
    a, b = (np.round(list(values.values()), NOISE_DECIMALS) for values in (reference, other))
    observed, expected = rankdata([*a, *b])[: len(a)].sum(), len(a) * (len(a) + len(b) + 1) / 2
    return Outcome(p_value(list(a), list(b)), float(observed), float(expected - observed))


def smallest_p_for(test: str, reference: Mapping[int, float], other: Mapping[int, float]) -> float:
    """Return the smallest p that the named test can reach with these runs."""
    if test == "bootstrap":
        return 2 / (1 + DRAWS)
    pairs = len(set(reference) & set(other))
    return smallest_p(pairs, pairs, test) if test == "paired" else smallest_p(len(reference), len(other), test)


def paired(a: Mapping[int, float], b: Mapping[int, float]) -> tuple[Array, Array]:
    """Return the values of the seeds that both have, in the same order."""
    seeds = sorted(set(a) & set(b))
    return np.asarray([a[seed] for seed in seeds]), np.asarray([b[seed] for seed in seeds])


def smallest_p(n: int, m: int, test: str = "exact") -> float:
    """Return the smallest two-sided p reachable with n against m runs: complete separation. Exact for any test."""
    return min(1.0, 2 / (2 ** min(n, m) if test == "paired" else comb(n + m, n)))


def seeds_needed(test: str, comparisons: int = 1) -> int:
    """Return the number of seeds below which no marker is possible, with Holm's correction of so many comparisons."""
    return next(n for n in count(2) if smallest_p(n, n, test) * comparisons < LEVEL)


def smallest_p_text(seeds: int) -> str:
    """Return a sentence on the smallest p that is reachable with this many seeds."""
    p = smallest_p(seeds, seeds)
    needed = f": no difference can be shown before {seeds_needed('exact')} seeds" if p >= LEVEL else ""
    return f"The smallest p that a rank-sum test can give, {seeds} against {seeds} runs, is {p:.4f}{needed}."


def holm(p_values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return Holm's step-down adjusted p of a family: the k-th smallest times the number not smaller, made monotone."""
    ordered = sorted(p_values, key=lambda key: p_values[key])
    scaled = [min(1.0, p_values[key] * (len(ordered) - k)) for k, key in enumerate(ordered)]
    return dict(zip(ordered, np.maximum.accumulate(scaled).tolist(), strict=True)) if ordered else {}


def competition_ranks(printed: Sequence[float]) -> Array:
    """Return ranks with 1 = lowest; equal printed values share the smallest rank, as in the published tables."""
    return np.asarray(rankdata(printed, method="min"), dtype=np.float64)


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the population standard deviation, as in the tables."""
    return float(np.mean(values)), float(np.std(values))


@dataclass(frozen=True)
class Summary:
    """The content of a published cell: mean and population standard deviation (ddof 0) of n runs."""

    mean: float
    std: float
    n: int

    @property
    def sample_std(self) -> float:
        return self.std * sqrt(self.n / (self.n - 1))


@dataclass(frozen=True)
class Welch:
    """The comparison of two means: p of their equality, half width of the interval of their difference."""

    p: float
    half_width: float


def welch(a: Summary, b: Summary) -> Welch:
    """Run Welch's test; NaN where a side has a single run. Without any spread, p is 1 if the means agree, else 0."""
    if min(a.n, b.n) < 2:
        return Welch(nan, nan)
    if round(max(a.std, b.std), NOISE_DECIMALS) == 0:
        return Welch(1.0 if round(a.mean - b.mean, NOISE_DECIMALS) == 0 else 0.0, 0.0)
    result = ttest_ind_from_stats(a.mean, a.sample_std, a.n, b.mean, b.sample_std, b.n, equal_var=False)
    of_a, of_b = a.sample_std**2 / a.n, b.sample_std**2 / b.n
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (a.n - 1) + of_b**2 / (b.n - 1))
    return Welch(float(result.pvalue), float(t.ppf(1 - LEVEL / 2, freedom) * sqrt(of_a + of_b)))


@dataclass(frozen=True)
class Difference:
    """The difference of paired runs: mean, half width of its t interval, correlation over at least three seeds."""

    mean: float
    half_width: float
    correlation: float
    n: int

    @property
    def leaves_zero_out(self) -> bool:
        """Tell whether zero is outside the interval, with enough seeds and a spread that is visible in print."""
        return self.n >= LEAST_SEEDS and round(self.half_width, 2) > 0 and abs(self.mean) > self.half_width


def paired_difference(a: Array, b: Array) -> Difference:
    """Return the difference b − a, seed by seed."""
    n, difference = len(a), b - a
    if n < 2:
        return Difference(float(difference.mean()) if n else nan, inf, nan, n)
    half_width = t.ppf(1 - LEVEL / 2, n - 1) * difference.std(ddof=1) / sqrt(n)
    spread = a.std() * b.std()
    correlation = ((a - a.mean()) * (b - b.mean())).mean() / spread if spread and n > 2 else nan
    return Difference(float(difference.mean()), float(half_width), float(correlation), n)


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


def bootstrap_ranks(
    values: Array, decimals: int, resamples: int, random: np.random.Generator, *, together: bool = True
) -> Array:
    """Return average ranks (resamples, methods) of values (methods, seeds, rows).

    All methods share the drawn seeds where these are drawn together, as pairs are; else each has draws of its own.
    """
    groups = [values] if together else values[:, None]
    means = np.concatenate([resampled_means(group, resamples, random) for group in groups], axis=1)
    ranks = rankdata(np.round(means, decimals), method="min", axis=1)
    return np.asarray(ranks.mean(axis=2), dtype=np.float64)


def resampled_means(values: Array, resamples: int, random: np.random.Generator) -> Array:
    """Return means (resamples, methods, rows) over seeds drawn with replacement, the same for all methods."""
    num_seeds = values.shape[1]
    drawn = random.integers(num_seeds, size=(resamples, num_seeds))
    shares = np.stack([np.bincount(draw, minlength=num_seeds) for draw in drawn]) / num_seeds
    return np.asarray(np.einsum("bs,msr->bmr", shares, values))


def probability_of_best(ranks: Array) -> Array:
    """Return the share of resamples in which each method has the lowest average rank; equal ones share it."""
    best = ranks == ranks.min(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))
