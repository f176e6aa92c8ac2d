"""Guarantees for a threshold, from held-out samples that nothing else has seen. Pure functions.

A threshold t keeps what is at least as confident. Given how many samples it keeps, m, their errors are binomial with
the selective risk R(t) at t, so that few errors among many kept samples speak against R(t) > r.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, floor, log, log1p, log2

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from scipy.stats import beta, binom

Array = NDArray[np.float64]
FIRST = 0.2
"""A fixed sequence begins with the threshold that keeps this share of the samples. Of the first few a single error
would end it; of so many it takes more."""
FIXED_SEQUENCE, SGR, HOEFFDING_BENTKUS = "fixed-sequence", "sgr", "hoeffding-bentkus"


@dataclass(frozen=True)
class Certificate:
    """A threshold whose selective risk is at most `risk`, with probability `confidence` over the held-out samples."""

    risk: float
    confidence: float
    """1 − δ."""
    bound: str
    num_images: int
    """All held-out samples, kept or not."""
    threshold: float | None
    """None where no threshold passes: then everything must be rejected."""
    kept: int
    errors: float
    """The sum of the losses of what is kept."""

    @property
    def coverage(self) -> float:
        """Return the share of the held-out samples that is kept."""
        return self.kept / self.num_images if self.num_images else 0.0

    @property
    def needed(self) -> int:
        """Return how many samples must be kept before any threshold can pass, if none of them is an error."""
        return needed_without_errors(self.risk, 1 - self.confidence)

    @property
    def upper_bound(self) -> float | None:
        """Return the upper end of the exact interval of the risk at this threshold, looked at alone."""
        if self.threshold is None or self.errors != int(self.errors):
            return None
        return clopper_pearson(int(self.errors), self.kept, 1 - self.confidence)


@dataclass(frozen=True)
class CoverageCertificate:
    """A threshold that keeps at least `coverage` of all inputs in the mean over held-out samples."""

    coverage: float
    confidence: float
    num_images: int
    threshold: float
    kept: int
    low: float
    high: float
    """The coverage of further inputs lies between these with probability `confidence`, if no confidences tie."""


@dataclass(frozen=True)
class Thresholds:
    """What each threshold of some samples keeps, from strict to lax: one for each distinct confidence."""

    values: Array
    kept: NDArray[np.int64]
    loss: Array
    """The sum of the losses of what is kept."""

    @classmethod
    def of(cls, confidence: ArrayLike, loss: ArrayLike) -> "Thresholds":
        confidence, loss = np.asarray(confidence, np.float64), np.asarray(loss, np.float64)
        values, position, counts = np.unique(-confidence, return_inverse=True, return_counts=True)
        sums = np.bincount(position, loss, minlength=len(values))
        return cls(-values, np.cumsum(counts), np.cumsum(sums))


def clopper_pearson(errors: int, kept: int, delta: float) -> float:
    """Return b with P(Bin(m, b) ≤ k) = δ, the upper bound of an error rate: Beta⁻¹(1−δ; k+1, m−k)."""
    if errors >= kept:
        return 1.0
    if errors == 0:
        return 1 - exp(log(delta) / kept)
    return float(beta.ppf(1 - delta, errors + 1, kept - errors))


def needed_without_errors(risk: float, delta: float) -> int:
    """Return the smallest m with (1−r)^m ≤ δ."""
    if risk >= 1:
        return 1
    least = max(1, ceil(log(delta) / log1p(-risk) - 1e-9))
    return least if (1 - risk) ** least <= delta * (1 + 1e-12) else least + 1


def binomial_p(loss: ArrayLike, kept: ArrayLike, risk: float) -> Array:
    """Return P(Bin(m, r) ≤ k), the p-value of R(t) > r by k errors among m kept samples."""
    return np.asarray(binom.cdf(loss, kept, risk), np.float64)


def hoeffding_bentkus_p(loss: ArrayLike, kept: ArrayLike, risk: float) -> Array:
    """Return min(e^(−m·h(min(r̂, r), r)), e·P(Bin(m, r) ≤ ⌈m r̂⌉)), r̂ the mean of m losses from 0 to 1.

    h(a, b) = a ln(a/b) + (1−a) ln((1−a)/(1−b)).
    """
    total, m = np.asarray(loss, np.float64), np.asarray(kept, np.float64)
    mean = np.minimum(total / m, risk)
    if risk >= 1:
        return np.zeros_like(mean)
    distance = xlogy(mean, mean / risk) + xlogy(1 - mean, (1 - mean) / (1 - risk))
    bentkus = np.e * binom.cdf(np.ceil(total - 1e-9), m, risk)
    return np.asarray(np.minimum(np.exp(-m * distance), bentkus))


PValue = Callable[[ArrayLike, ArrayLike, float], Array]
P_VALUES: dict[str, PValue] = {FIXED_SEQUENCE: binomial_p, HOEFFDING_BENTKUS: hoeffding_bentkus_p}


def fixed_sequence(found: Thresholds, risk: float, delta: float, p_value: PValue) -> int | None:
    """Return the laxest threshold, by number, up to which all pass: each is tested at δ, from strict to lax.

    The first one tested is known before any label is seen: it keeps a fifth of the samples, or as many as a pass
    takes. Where it is, and which others follow, the confidences alone decide.
    """
    first = max(needed_without_errors(risk, delta), ceil(FIRST * found.kept[-1]))
    tested = np.flatnonzero(found.kept >= first)
    if not len(tested):
        return None
    passes = p_value(found.loss[tested], found.kept[tested], risk) <= delta
    count = len(passes) if passes.all() else int(np.argmin(passes))
    return int(tested[count - 1]) if count else None


def sgr(found: Thresholds, risk: float, delta: float) -> int | None:
    """Return the threshold, by number, that a binary search ends with (Geifman & El-Yaniv 2017).

    Of n samples it looks at ⌈log₂ n⌉ thresholds at most, each with its share of δ. Where none passes, there is none.
    """
    steps = max(1, ceil(log2(found.kept[-1])))
    low, high, best = -1, len(found.values), None
    for _ in range(steps):
        middle = (low + high + 1) // 2
        if middle in (low, high):
            break
        if clopper_pearson(int(found.loss[middle]), int(found.kept[middle]), delta / steps) <= risk:
            low = best = middle
        else:
            high = middle
    return best


def certify(
    confidence: ArrayLike, loss: ArrayLike, risk: float, delta: float, bound: str = FIXED_SEQUENCE
) -> Certificate:
    """Return the laxest threshold whose selective risk is at most `risk` with probability 1 − δ.

    Losses are 0 or 1, or lie between them: then the exact binomial test does not hold, and Hoeffding–Bentkus is used.
    """
    loss = np.asarray(loss, np.float64)
    if not ((loss == 0) | (loss == 1)).all():
        if bound == SGR:
            raise ValueError("sgr is a bound for right and wrong predictions; take hoeffding-bentkus for other losses")
        bound = HOEFFDING_BENTKUS
    found = Thresholds.of(confidence, loss)
    chosen = None
    if len(loss):
        chosen = sgr(found, risk, delta) if bound == SGR else fixed_sequence(found, risk, delta, P_VALUES[bound])
    if chosen is None:
        return Certificate(risk, 1 - delta, bound, len(loss), None, 0, 0.0)
    threshold, kept, errors = found.values[chosen], found.kept[chosen], found.loss[chosen]
    return Certificate(risk, 1 - delta, bound, len(loss), float(threshold), int(kept), float(errors))


def certify_coverage(confidence: ArrayLike, coverage: float, delta: float) -> CoverageCertificate:
    """Return the threshold t = s₍ⱼ₎, j = ⌊(n+1)(1−c)⌋, the j-th smallest of n confidences; j = 0 keeps everything.

    Of inputs like these it keeps a share that is Beta(n+1−j, j) distributed, with mean (n+1−j)/(n+1) ≥ c.
    """
    ascending = np.sort(np.asarray(confidence, np.float64))
    n = len(ascending)
    if n == 0:
        raise ValueError("there are no held-out samples")
    rank = min(n, floor((n + 1) * (1 - coverage) + 1e-9))
    if rank == 0:
        return CoverageCertificate(coverage, 1 - delta, n, -np.inf, n, 1.0, 1.0)
    threshold = float(ascending[rank - 1])
    low, high = beta.ppf([delta / 2, 1 - delta / 2], n + 1 - rank, rank)
    kept = int((ascending >= threshold).sum())
    return CoverageCertificate(coverage, 1 - delta, n, threshold, kept, float(low), float(high))
