"""Statistics over seeds: the two-sided Wilcoxon rank-sum test and what it can show at a given number of runs."""

from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, ranksums

LEVEL = 0.05


def exact_rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of the rank-sum of `a` over all splits of the pooled values, ties by mid-ranks.

    Exact with and without ties, for any number of values: the distribution is built by counting subsets by their sum
    of doubled ranks, one value at a time.
    """
    ranks = np.rint(2 * rankdata([*a, *b])).astype(np.int64)
    counts = np.zeros((len(a) + 1, ranks.sum() + 1))
    counts[0, 0] = 1
    for rank in ranks:
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank].copy()
    ways, observed = counts[len(a)], ranks[: len(a)].sum()
    tail = min(ways[: observed + 1].sum(), ways[observed:].sum()) / ways.sum()
    return float(min(1.0, 2 * tail))


def normal_rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The normal approximation without continuity or tie correction (scipy's `ranksums`)."""
    return float(ranksums(a, b).pvalue)


TESTS = {"exact": exact_rank_sum_p, "ranksums": normal_rank_sum_p}


def smallest_p(n: int, m: int) -> float:
    """The smallest two-sided p that n against m runs can reach: complete separation."""
    return min(1.0, 2 / comb(n + m, n))


def compare(
    reference: Sequence[float], other: Sequence[float], test: str, lower_is_better: bool = True
) -> tuple[str, float]:
    """("better" | "worse" | "tie", p): how the reference fares against the other. Never more than n can support."""
    if not reference or not other:
        return "tie", float("nan")
    p = TESTS[test](reference, other)
    if p >= LEVEL or smallest_p(len(reference), len(other)) >= LEVEL:
        return "tie", p
    reference_lower = rankdata([*reference, *other])[: len(reference)].mean() < (len(reference) + len(other) + 1) / 2
    return ("better" if reference_lower == lower_is_better else "worse"), p


def competition_ranks(printed: Sequence[float]) -> NDArray[np.float64]:
    """1 = lowest; equal printed values share the smallest rank, as in the published tables."""
    return np.asarray(rankdata(printed, method="min"), dtype=np.float64)
