"""Confidence scores that compare an image with others: float64 functions, **larger always means more confident.**

What `known` or `train` stands for is fitted: validation or training images, never the test images.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from benchmark.measure.metrics import aurc, blocks, by_rows
from benchmark.measure.prediction import Floats
from benchmark.measure.scores import Confidence, softmax_response, unit

Table = NDArray[np.float64]
Truths = NDArray[np.bool_]
PAIRS = 4_000_000
"""Distances that are held at a time: 32 megabytes."""
TEMPERATURES = (1.0, *((100 + side * steps) / 100 for steps in range(1, 100) for side in (-1, 1)))
"""From 0.01 to 1.99, those near 1 first."""
SAME_AURC = 12
"""Decimals beyond which a difference of AURC is the noise of its sum."""


def in_parts(formula: Callable[[Floats], ArrayLike], queries: Floats, width: int) -> Confidence:
    """Return the values of a formula with one for each row, for which it holds `width` numbers in memory."""
    parts = np.array_split(queries, max(1, -(-len(queries) * width // PAIRS)))
    return np.concatenate([np.asarray(formula(part), np.float64) for part in parts])


def together(logits: Floats) -> Table:
    """Return E[ppᵀ], (K, K)."""
    classes = logits.shape[1]
    total = np.zeros((classes, classes))
    for rows in blocks(logits):
        p = softmax(np.asarray(logits[rows], np.float64), axis=1)
        total += p.T @ p
    return total / len(logits)


def relative_uncertainty_matrix(known: Floats, wrong: Truths, weight: float = 0.5) -> Table:
    """Return D = relu(λ E[ppᵀ | wrong] − (1−λ) E[ppᵀ | right]) with a diagonal of zeros, over all K classes."""
    costs = np.maximum(0, weight * together(known[wrong]) - (1 - weight) * together(known[~wrong]))
    np.fill_diagonal(costs, 0)
    return np.asarray(costs)


def relative_uncertainty(logits: Floats, known: Floats, wrong: Truths, weight: float = 0.5) -> Confidence:
    """Return Rel-U = −pᵀDp."""
    return cost_of_classes(logits, relative_uncertainty_matrix(known, wrong, weight))


def cost_of_classes(logits: Floats, costs: Table) -> Confidence:
    """Return −pᵀDp."""

    def score(u: Floats) -> Confidence:
        p = softmax(np.asarray(u, np.float64), axis=1)
        return np.asarray(-((p @ costs) * p).sum(axis=1))

    return np.asarray(by_rows(score, logits), np.float64)


def log_closeness(features: Floats, known: Floats, k: int) -> Confidence:
    """Return the mean of −ln(d + 10⁻⁶) over the k smallest squared distances d between unit features."""
    sample, k = unit(known), min(k, len(known))

    def score(part: Floats) -> Confidence:
        similar = unit(part) @ sample.T
        nearest = np.partition(similar, len(sample) - k, axis=1)[:, len(sample) - k :]
        return np.asarray(-np.log(np.maximum(2 - 2 * nearest, 0) + 1e-6).mean(axis=1))

    return in_parts(score, features, len(sample))


def delta_nearest_neighbours(features: Floats, known: Floats, wrong: Truths, k: int = 25) -> Confidence:
    """Return the log-closeness to the features of right samples minus that to the features of wrong samples."""
    return log_closeness(features, known[~wrong], k) - log_closeness(features, known[wrong], k)


def white_centres(known: Floats, labels: NDArray[np.int64]) -> tuple[Table, Table, Table]:
    """Return the mean of features, a matrix A that whitens them about their class means, and these means, whitened.

    Σ⁺ = AAᵀ. Directions without any spread are left out, as the pseudo-inverse does.
    """
    f = np.asarray(known, np.float64)
    centre = f.mean(axis=0)
    classes, position = np.unique(labels, return_inverse=True)
    means = np.stack([f[labels == c].mean(axis=0) for c in classes])
    residuals = f - means[position]
    spread, directions = np.linalg.eigh(residuals.T @ residuals / len(f))
    clear = spread > spread.max(initial=0.0) * max(f.shape) * np.finfo(np.float64).eps
    whitening = directions[:, clear] / np.sqrt(spread[clear])
    return centre, whitening, (means - centre) @ whitening


def nearest_white(features: Floats, centre: Table, whitening: Table, white_means: Table) -> Confidence:
    """Return min_c ‖Aᵀf − Aᵀμ_c‖²."""

    def score(part: Floats) -> Confidence:
        white = (np.asarray(part, np.float64) - centre) @ whitening
        squares = (white**2).sum(axis=1, keepdims=True) + (white_means**2).sum(axis=1)
        return np.asarray(np.maximum(squares - 2 * white @ white_means.T, 0).min(axis=1))

    return in_parts(score, features, len(white_means) + features.shape[1])


def nearest_mean(features: Floats, known: Floats, labels: NDArray[np.int64]) -> Confidence:
    """Return min_c M_c, M_c = (f−μ_c)ᵀ Σ⁺ (f−μ_c) = ‖Aᵀf − Aᵀμ_c‖², over the classes that have a sample."""
    return nearest_white(features, *white_centres(known, labels))


def delta_mahalanobis(features: Floats, known: Floats, labels: NDArray[np.int64], wrong: Truths) -> Confidence:
    """Return min_c M⁻_c − min_c M⁺_c: means and one covariance of the wrong samples, and of the right ones."""
    to_wrong, to_right = (nearest_mean(features, known[part], labels[part]) for part in (wrong, ~wrong))
    return to_wrong - to_right


def feature_norm(features: Floats) -> Confidence:
    """Return S₂ = ‖f‖₁."""
    return np.asarray(by_rows(lambda f: np.abs(np.asarray(f, np.float64)).sum(axis=1), features), np.float64)


def sirc(logits: Floats, second: Floats, train_second: Floats) -> Confidence:
    """Return −ln(1 − S₁) − ln(1 + e^{−b(S₂−a)}), S₁ = SR, a = mean − 3 std and b = 1/std of S₂ in training."""
    return discounted_response(logits, second, *usual_range(train_second))


def usual_range(second: Floats) -> tuple[float, float]:
    """Return mean − 3 std and 1/std."""
    spread = max(float(np.std(second)), float(np.finfo(np.float32).tiny))
    return float(np.mean(second)) - 3 * spread, 1 / spread


def discounted_response(logits: Floats, second: Floats, start: float, slope: float) -> Confidence:
    """Return −ln(1 − S₁) − ln(1 + e^{−b(S₂−a)}). With the log-odds s of SR, −ln(1 − S₁) = ln(1 + eˢ) stays exact."""
    odds = by_rows(softmax_response, logits)
    return np.asarray(np.logaddexp(0, odds) - np.logaddexp(0, -slope * (np.asarray(second, np.float64) - start)))


def principal_dimension(width: int) -> int:
    """Return the number of directions that count as explained, as published for features of this width."""
    return 1000 if width >= 2048 else 512 if width >= 768 else width // 2


def residual_norm(features: Floats, origin: Table, others: Table) -> Confidence:
    """Return ‖R⊥(f − o)‖₂, the part in the directions `others` (columns)."""

    def score(part: Floats) -> Confidence:
        return np.asarray(np.linalg.norm((np.asarray(part, np.float64) - origin) @ others, axis=1))

    return in_parts(score, features, features.shape[1])


@dataclass(frozen=True)
class Residual:
    """What ViM knows of the training features."""

    origin: Table
    """o = −W⁺b."""
    others: Table
    """R⊥: in its columns, the directions in which training features have the least second moment about o."""
    scale: float
    """α: the mean largest logit over the mean norm of what lies in these directions."""


def virtual_logit(
    logits: Floats,
    features: Floats,
    train_logits: Floats,
    train: Floats,
    weight: Floats,
    bias: Floats,
    dimension: int | None = None,
) -> Confidence:
    """Return ViM = log Σ_j exp(u_j) − α ‖R⊥(f − o)‖₂."""
    return level_less_residual(logits, features, residual_of(train_logits, train, weight, bias, dimension))


def residual_of(
    train_logits: Floats, train: Floats, weight: Floats, bias: Floats, dimension: int | None = None
) -> Residual:
    """Return what ViM takes from training images; `dimension` directions count as explained, else as published."""
    origin = -np.linalg.pinv(np.asarray(weight, np.float64)) @ np.asarray(bias, np.float64)
    moment = np.zeros((train.shape[1], train.shape[1]))
    for rows in blocks(train):
        centred = np.asarray(train[rows], np.float64) - origin
        moment += centred.T @ centred
    _, directions = np.linalg.eigh(moment)  # in ascending order, real and orthogonal
    kept = principal_dimension(train.shape[1]) if dimension is None else dimension
    others = directions[:, : train.shape[1] - kept]
    largest = by_rows(lambda u: np.asarray(u, np.float64).max(axis=1), train_logits).mean()
    length = residual_norm(train, origin, others).mean()
    return Residual(origin, others, float(largest / length if length > 0 else 0.0))


def level_less_residual(logits: Floats, features: Floats, known: Residual) -> Confidence:
    """Return log Σ_j exp(u_j) − α ‖R⊥(f − o)‖₂."""
    level = by_rows(lambda u: logsumexp(np.asarray(u, np.float64), axis=1), logits)
    return np.asarray(level - known.scale * residual_norm(features, known.origin, known.others))


def best_temperature(known: Floats, wrong: Truths) -> float:
    """Return the temperature T at which SR of u/T has the lowest AURC: 1 unless another is better, then the nearest."""

    def risk(heat: float) -> float:
        return round(aurc(heated_response(known, heat), wrong), SAME_AURC)

    return min(TEMPERATURES, key=risk)


def heated_response(logits: Floats, heat: float) -> Confidence:
    """Return SR of u/T, as its log-odds."""
    return np.asarray(by_rows(lambda u: softmax_response(np.asarray(u, np.float64) / heat), logits), np.float64)
