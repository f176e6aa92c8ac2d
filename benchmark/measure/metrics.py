"""Metrics of selective classification: pure numpy functions that look like their equations.

Every ranking metric takes (confidence, loss) in that order: `confidence` (n,), larger = kept first; `loss` (n,), 0 or 1
for an error, or any expected error in [0, 1]. Ties are never broken by position: a tied block counts with its mean
loss, which is the expectation over random tie-breaking. Everything is a fraction; per cent appear only in print.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from scipy.stats import rankdata

Array = NDArray[np.float64]

CURVE_COVERAGES: Array = np.arange(201) / 200
COST_RATIOS: Array = np.arange(101) / 200
ROUNDING = 1e-9
"""Less than this is lost when floats are added up: what exceeds a bound by no more does not exceed it."""
BLOCK = 2**18
"""Numbers of a table that are worked on at a time: they stay in the processor's cache, and spare the memory."""


def blocks(table: NDArray[np.floating]) -> Iterator[slice]:
    """Yield the rows of a table in parts of a few megabytes."""
    step = max(1, BLOCK // max(1, table.shape[1]))
    return (slice(start, start + step) for start in range(0, len(table), step))


def by_rows(formula: Callable[[NDArray[np.floating]], ArrayLike], table: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the values of a formula that gives one for each row."""
    return np.concatenate([np.asarray(formula(table[rows])) for rows in blocks(table)])


def ranked_loss(confidence: ArrayLike, loss: ArrayLike) -> Array:
    """Return the losses from the most to the least confident sample, each tied block replaced by its mean."""
    confidence, loss = np.asarray(confidence), np.asarray(loss, dtype=np.float64)
    order = np.argsort(-confidence, kind="stable")
    ranked, values = loss[order], confidence[order]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    if len(starts) == len(ranked):
        return ranked
    sizes = np.diff(np.r_[starts, len(ranked)])
    return np.repeat(np.add.reduceat(ranked, starts) / sizes, sizes)


def risk_curve(ranked: Array) -> Array:
    """Return R_k = (1/k) Σ_{i≤k} ℓ_(i) for k = 1..n, from `ranked_loss`."""
    return np.cumsum(ranked) / np.arange(1, len(ranked) + 1)


def kept(coverage: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return k = ⌈c·n − 1e-9⌉, at least 1: the coverage reached is never below the one asked for."""
    return np.maximum(1, np.ceil(np.asarray(coverage) * n - 1e-9)).astype(np.int64)


def selective_risk(confidence: ArrayLike, loss: ArrayLike, coverage: ArrayLike) -> Array:
    """Return the mean loss of the ⌈c·n⌉ most confident samples, for one coverage in [0, 1] or many.

    >>> selective_risk([0.9, 0.8, 0.8, 0.1], [0, 1, 0, 1], [0.5, 1.0])
    array([0.25, 0.5 ])
    """
    return risk_at(ranked_loss(confidence, loss), coverage)


def risk_at(ranked: Array, coverage: ArrayLike) -> Array:
    return np.asarray(risk_curve(ranked)[kept(coverage, len(ranked)) - 1])


def kept_weights(confidence: ArrayLike, coverage: float) -> Array:
    """Return how much of each sample is kept: 1 or 0, and one equal share in the tied block at the threshold."""
    confidence = np.asarray(confidence)
    count = int(kept(coverage, len(confidence)))
    threshold = np.sort(confidence)[len(confidence) - count]
    above, tied = confidence > threshold, confidence == threshold
    return np.asarray(above + tied * (count - above.sum()) / tied.sum(), dtype=np.float64)


def class_coverage(confidence: ArrayLike, labels: ArrayLike, num_classes: int, coverage: float) -> Array:
    """Return the share kept of each class at a coverage of all samples; NaN for a class without samples."""
    labels = np.asarray(labels)
    counts = np.bincount(labels, minlength=num_classes)
    kept_of = np.bincount(labels, kept_weights(confidence, coverage), minlength=num_classes)
    return np.asarray(np.divide(kept_of, counts, out=np.full(num_classes, np.nan), where=counts > 0))


def percentile_risk(confidence: ArrayLike, loss: ArrayLike, coverage: ArrayLike) -> tuple[Array, Array]:
    """Return the risk and the coverage really kept, by the rule of the public codes.

    It keeps all at or above the (1−c) percentile, interpolated linearly. Of a tied block it keeps all: maybe > c·n.
    """
    confidence, loss = np.asarray(confidence, np.float64), np.asarray(loss, np.float64)
    thresholds = np.percentile(confidence, 100 - 100 * np.atleast_1d(coverage))
    order = np.argsort(confidence)
    first = np.searchsorted(confidence[order], thresholds, side="left")
    from_here = np.cumsum(loss[order][::-1])[::-1]
    number = len(order) - first
    return np.asarray(from_here[first] / number), np.asarray(number / len(order))


def aurc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return AURC = (1/n) Σ_k R_k: the mean selective risk over all coverages."""
    return mean_risk(ranked_loss(confidence, loss))


def mean_risk(ranked: Array) -> float:
    return float(risk_curve(ranked).mean())


def optimal_aurc(num_errors: int, n: int) -> float:
    """Return the AURC of a perfect ranking with E errors: [E − (n−E)(H_n − H_{n−E})]/n."""
    harmonic = (1 / np.arange(n - num_errors + 1, n + 1)).sum()
    return float((num_errors - (n - num_errors) * harmonic) / n)


def e_aurc(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return the AURC minus the best that the same errors allow (finite-sample optimum); error is 0 or 1."""
    error = np.asarray(error)
    return aurc(confidence, error) - optimal_aurc(int(error.sum()), len(error))


def augrc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return ∫ G dc with G_k = (1/n) Σ_{i≤k} ℓ_(i), by trapezoids from (0, 0) (Traub et al., NeurIPS 2024)."""
    return mean_generalised_risk(ranked_loss(confidence, loss))


def mean_generalised_risk(ranked: Array) -> float:
    n = len(ranked)
    generalised = np.r_[0.0, np.cumsum(ranked)] / n
    return float((generalised[1:] + generalised[:-1]).sum() / (2 * n))


def naurc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return the AURC, normalised by that of a perfect and of a random ranking of the same losses."""
    loss = np.asarray(loss, np.float64)
    return float(normalised_aurc(aurc(confidence, loss), aurc(-loss, loss), loss.mean()))


def normalised_aurc(area: ArrayLike, best: ArrayLike, risk: ArrayLike) -> Array:
    """Return NAURC = (AURC − AURC*)/(R(1) − AURC*): 0 is perfect, 1 is random; NaN where all losses are alike."""
    room = np.asarray(risk - np.asarray(best))
    gap = np.asarray(area - np.asarray(best))
    return np.asarray(np.divide(gap, room, out=np.full_like(room, np.nan), where=room > ROUNDING))


def coverage_at_risk(confidence: ArrayLike, loss: ArrayLike, risk: float) -> float:
    """Return the largest coverage k/n with R_k ≤ r; 0 if there is none. It is SAC at the accuracy 1 − r."""
    return largest_coverage(ranked_loss(confidence, loss), risk)


def largest_coverage(ranked: Array, risk: float) -> float:
    within = np.flatnonzero(risk_curve(ranked) <= risk + ROUNDING)
    return float(within[-1] + 1) / len(ranked) if len(within) else 0.0


def fpr_at_tpr(confidence: ArrayLike, error: ArrayLike, tpr: float = 0.95) -> float:
    """Return the share of wrong samples kept, by the strictest threshold that keeps a share of the correct ones.

    Correct is positive. Of a tied block all are kept. NaN if there is only one kind.
    """
    confidence, error = np.asarray(confidence), np.asarray(error, dtype=bool)
    correct, wrong = confidence[~error], confidence[error]
    if not len(correct) or not len(wrong):
        return float("nan")
    threshold = np.sort(correct)[len(correct) - kept(tpr, len(correct))]
    return float((wrong >= threshold).mean())


def failure_aupr(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return Σ_t (recall_t − recall_{t−1}) · precision_t of errors, the least confident first; a tied block is one t.

    NaN if there is only one kind.
    """
    confidence, error = np.asarray(confidence), np.asarray(error, np.float64)
    if error.min() == error.max():
        return float("nan")
    order = np.argsort(confidence)
    values = confidence[order]
    last = np.flatnonzero(np.r_[values[1:] != values[:-1], True])
    found = np.cumsum(error[order])[last]
    return float((np.diff(found, prepend=0) * found / (last + 1)).sum() / found[-1])


def errors_kept(ranked: Array) -> Array:
    """Return E_k = Σ_{i≤k} ℓ_(i) for k = 0..n, from `ranked_loss`."""
    return np.asarray(np.r_[0.0, np.cumsum(ranked)])


def threshold_costs(errors: Array, ratio: float) -> Array:
    """Return (E_k + ρ(n − k))/n for k = 0..n, from `errors_kept`: what it costs to keep k and to reject the rest.

    An error costs 1, a rejection ρ. Within a tied block, which no threshold can split, the cost is linear in k, so the
    least is at an end of one.
    """
    rejected = np.arange(len(errors))[::-1]
    return np.asarray((errors + ratio * rejected) / rejected[0])


def best_costs(ranked: Array, ratios: Array) -> Array:
    """Return the cost at each ratio by the best threshold, chosen on these samples themselves."""
    errors = errors_kept(ranked)
    return np.array([threshold_costs(errors, ratio).min() for ratio in ratios])


def chow_costs(probability: ArrayLike, error: ArrayLike, ratios: ArrayLike) -> Array:
    """Return the cost at each ratio by Chow's rule: keep if the largest class probability is at least 1 − ρ."""
    probability, error, ratios = (np.asarray(each, np.float64) for each in (probability, error, ratios))
    order = np.argsort(probability)
    rejected = np.searchsorted(probability[order], 1 - ratios)
    errors = np.r_[np.cumsum(error[order][::-1])[::-1], 0.0]
    return np.asarray((errors[rejected] + ratios * rejected) / len(order))


def failure_auroc(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return P(a correct sample is more confident than a wrong one), ties half; NaN if there is only one kind."""
    error = np.asarray(error, dtype=bool)
    correct, wrong = int((~error).sum()), int(error.sum())
    if not correct or not wrong:
        return float("nan")
    rank_sum = rankdata(np.asarray(confidence))[~error].sum()
    return float((rank_sum - correct * (correct + 1) / 2) / (correct * wrong))


def augrc_of(auroc: float, accuracy: float) -> float:
    """Return AUGRC = (1 − AUROC)·acc·(1 − acc) + ½(1 − acc)², exact with ties at half credit."""
    return (1 - auroc) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2


def split_gain(base_auroc: float, base_accuracy: float, auroc: float, accuracy: float) -> tuple[float, float]:
    """Return the fall of AUGRC against a base: what the ranking alone gives at the base's accuracy, and the rest."""
    base, ranked = augrc_of(base_auroc, base_accuracy), augrc_of(auroc, base_accuracy)
    return base - ranked, ranked - augrc_of(auroc, accuracy)


def marginal_risk(curve: Sequence[float], coverage: float, width: int = 5) -> float:
    """Return ρ(c) = d(c·R)/dc, the risk at the threshold, by a difference over `width` grid steps to either side."""
    index, last = round(coverage * (len(curve) - 1)), len(curve) - 1
    low, high = max(index - width, 0), min(index + width, last)
    return float((high * curve[high] - low * curve[low]) / (high - low))


def sampling_variance(curve: Sequence[float], coverage: float, n: int) -> float:
    """Return the variance of R(c) over test sets of n images, the network fixed: (R − 2Rρ + ρ² − c(R − ρ)²)/(n·c).

    By the influence function of a mean above a quantile; at full coverage it is R(1 − R)/n.
    """
    risk, marginal = curve[round(coverage * (len(curve) - 1))], marginal_risk(curve, coverage)
    spread = risk - 2 * risk * marginal + marginal**2 - coverage * (risk - marginal) ** 2
    return max(0.0, spread) / (n * coverage)


class Likelihoods(NamedTuple):
    """What calibration and accuracy of probabilities are computed from, one value per sample."""

    label_log_p: Array
    """log p_y"""
    squared_distance: Array
    """Σ_j (p_j − 1[y=j])²"""
    largest_p: Array
    """max_j p_j"""


def likelihoods(logits: ArrayLike, labels: ArrayLike) -> Likelihoods:
    """Return the values of each sample, p the softmax of its logits, in one pass over them."""
    u, y = np.asarray(logits), np.asarray(labels)
    parts = [block_likelihoods(np.asarray(u[rows], np.float64), y[rows]) for rows in blocks(u)]
    return Likelihoods(*map(np.concatenate, zip(*parts, strict=True)))


def block_likelihoods(logits: Array, labels: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    own = np.arange(len(labels)), labels
    log_p = log_softmax(logits, axis=1)
    residual = np.exp(log_p)
    largest = residual.max(axis=1)
    residual[own] -= 1
    return log_p[own], (residual**2).sum(axis=1), largest


def nll(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean −log p_y."""
    return float(-likelihoods(logits, labels).label_log_p.mean())


def brier(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean Σ_j (p_j − 1[y=j])², in [0, 2]."""
    return float(likelihoods(logits, labels).squared_distance.mean())


def ece(probability: ArrayLike, error: ArrayLike, bins: int = 15) -> float:
    """Return Σ_b (|B_b|/n) |acc_b − conf_b| over equal-width bins (lo, hi] of the largest probability."""
    r, correct = np.asarray(probability, np.float64), 1 - np.asarray(error, np.float64)
    index = np.clip(np.ceil(bins * r).astype(np.int64) - 1, 0, bins - 1)
    return float(np.abs(np.bincount(index, correct - r, minlength=bins)).sum() / len(r))


def top_ties(confidence: ArrayLike) -> float:
    """Return the share of samples tied at the highest confidence: above 0.001, risk at low coverage is an average."""
    confidence = np.asarray(confidence)
    return float((confidence == confidence.max()).mean())


def curve(ranked: Array) -> Sequence[float]:
    """Return the selective risk at the 201 coverages 0, 0.5, …, 100 % that every record keeps."""
    return [float(r) for r in risk_at(ranked, CURVE_COVERAGES)]


def cost_curve(ranked: Array) -> Sequence[float]:
    """Return the cost by the best threshold at the ratios 0, 0.5, …, 50 % that every record keeps."""
    return [float(cost) for cost in best_costs(ranked, COST_RATIOS)]


def chow_cost_curve(probability: ArrayLike, error: ArrayLike) -> Sequence[float]:
    """Return the same by Chow's rule."""
    return [float(cost) for cost in chow_costs(probability, error, COST_RATIOS)]
