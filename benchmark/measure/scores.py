"""Confidence scores: pure float64 functions of logits or features. **Larger always means more confident.**"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logsumexp

from benchmark.measure.metrics import by_rows
from benchmark.measure.prediction import CONFIDENCE, Floats, Stored

Confidence = NDArray[np.float64]
TIE_BREAK = 1e-6
"""How much a softmax response counts beside a disagreement, whose values lie further apart."""


def softmax_response(logits: Floats) -> Confidence:
    """Return SR = max_j p_j, as its log-odds  u_max − log Σ_{j≠max} exp(u_j).

    Strictly increasing in SR, so the ranking is the same, but without the ties that appear where the probability
    rounds to 1 (a logit gap of 17 in float32, 37 in float64).
    """
    u = np.asarray(logits, dtype=np.float64)
    top = u.argmax(axis=1)[:, None]
    others = u.copy()
    np.put_along_axis(others, top, -np.inf, axis=1)
    return np.asarray(np.take_along_axis(u, top, axis=1)[:, 0] - logsumexp(others, axis=1), dtype=np.float64)


def single_softmax(outputs: Floats) -> NDArray[np.float32]:
    """Return probabilities computed in float32: from a logit gap of 17 on they round to 1, and tie."""
    u = np.asarray(outputs, dtype=np.float32)
    powers = np.exp(u - u.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)


def as_public_codes(name: str, confidence: Confidence, prediction: Stored) -> NDArray[np.float32]:
    """Return the score in the precision in which the public codes rank it, softmax included."""
    if name == "SR" and prediction.probabilities is None and f"{CONFIDENCE}{name}" not in prediction.aux:
        return np.asarray(by_rows(lambda u: single_softmax(u).max(axis=1), prediction.logits), np.float32)
    if name == "abstention" and "abstain" in prediction.aux:
        outputs = np.column_stack([prediction.logits, prediction.aux["abstain"]])
        return np.asarray(-single_softmax(outputs)[:, -1])
    return np.asarray(confidence, dtype=np.float32)


def abstention(logits: Floats, abstain: Floats) -> Confidence:
    """Return −log p_{k+1}, p = softmax over classes and abstention output: log(1 + exp(logsumexp(u) − u_{k+1}))."""
    u = np.asarray(logits, dtype=np.float64)
    gap = logsumexp(u, axis=1) - np.asarray(abstain, dtype=np.float64)
    return np.asarray(np.logaddexp(0.0, gap), dtype=np.float64)


def margin(logits: Floats) -> Confidence:
    """Return p₍₁₎ − p₍₂₎, as −log(1 − p₍₁₎ + p₍₂₎): the same ranking, without ties where p₍₁₎ rounds to 1."""
    log_p = np.sort(log_softmax(np.asarray(logits, np.float64), axis=1), axis=1)
    return np.asarray(-np.logaddexp(logsumexp(log_p[:, :-1], axis=1), log_p[:, -2]))


def logit_margin(logits: Floats) -> Confidence:
    """Return u₍₁₎ − u₍₂₎ = log p₍₁₎/p₍₂₎. For more than two classes it ranks unlike p₍₁₎ − p₍₂₎."""
    u = np.partition(np.asarray(logits, np.float64), -2, axis=1)
    return np.asarray(u[:, -1] - u[:, -2])


def normalised_margin(logits: Floats, weight: Floats) -> Confidence:
    """Return min_{j≠ŷ} (u_ŷ/‖w_ŷ‖ − u_j/‖w_j‖), ŷ = argmax u: the gap of the class that the classifier says.

    It is below zero where another class is ahead after the division. To take that one would score another classifier.
    """
    u = np.asarray(logits, np.float64)
    own = u.argmax(axis=1)[:, None]
    distances = u / row_lengths(weight)
    others = distances.copy()
    np.put_along_axis(others, own, -np.inf, axis=1)
    return np.asarray(np.take_along_axis(distances, own, axis=1)[:, 0] - others.max(axis=1))


def row_lengths(weight: Floats) -> NDArray[np.float64]:
    """Return ‖w_j‖, and the smallest number in the place of zero."""
    lengths = np.linalg.norm(np.asarray(weight, np.float64), axis=1)
    return np.asarray(np.maximum(lengths, np.finfo(np.float64).tiny))


def generalised_entropy(logits: Floats, gamma: float = 0.1, most: int = 100) -> Confidence:
    """Return GEN = −Σ p^γ (1−p)^γ over the `most` largest p; of the largest, 1 − p is the sum of the others."""
    log_p = np.sort(log_softmax(np.asarray(logits, np.float64), axis=1), axis=1)
    rest = logsumexp(log_p[:, :-1], axis=1, keepdims=True)
    largest = log_p[:, -most:]
    log_rest = np.concatenate([np.log1p(-np.exp(largest[:, :-1])), rest], axis=1)
    return np.asarray(-np.exp(gamma * (largest + log_rest)).sum(axis=1))


def negative_entropy(logits: Floats) -> Confidence:
    """Return Σ_j p_j log p_j."""
    log_p = log_softmax(np.asarray(logits, np.float64), axis=1)
    return np.asarray((np.exp(log_p) * log_p).sum(axis=1))


def max_logit(logits: Floats) -> Confidence:
    return np.asarray(np.asarray(logits, np.float64).max(axis=1))


def cosine_logit(logits: Floats) -> Confidence:
    """Return max_k u_k/‖u‖₂, the cosine between the logits and the axis of the predicted class; 0 where all are 0."""
    u = np.asarray(logits, np.float64)
    norm = np.linalg.norm(u, axis=1)
    return np.asarray(np.divide(u.max(axis=1), norm, out=np.zeros_like(norm), where=norm > 0))


def disagreement(logits: Floats, doubt: Floats) -> Confidence:
    """Return −(s + ε(1 − r)): ranked by s, of which many are exactly 0, and among equal s by the softmax response r.

    ε = 1e-6 is less than any two values of s differ by, and 1 − r does not round to 0. Unlike a rank, the sum says
    the same of an image whatever the others are.
    """
    return np.asarray(-(np.asarray(doubt, np.float64) + TIE_BREAK * expit(-softmax_response(logits))))


def energy(logits: Floats) -> Confidence:
    """Return log Σ_j exp(u_j)."""
    return np.asarray(logsumexp(np.asarray(logits, np.float64), axis=1))


def doctor(logits: Floats) -> Confidence:
    """Return D_α = −(1−g)/g with g = Σ_j p_j²; 1 − g = Σ_j p_j(1−p_j), and 1 − p_max is the sum of the others."""
    p = np.sort(np.exp(log_softmax(np.asarray(logits, np.float64), axis=1)), axis=1)
    rest = np.concatenate([1 - p[:, :-1], p[:, :-1].sum(axis=1, keepdims=True)], axis=1)
    return np.asarray(-(p * rest).sum(axis=1) / (p**2).sum(axis=1))


def max_logit_pnorm(logits: Floats, p: int) -> Confidence:
    """Return max_k (u_k − μ)/‖u − μ‖_p, μ the mean logit; p = 0 omits the norm. Does not depend on temperature."""
    u = np.asarray(logits, np.float64)
    centred = u - u.mean(axis=1, keepdims=True)
    top = centred.max(axis=1)
    if p == 0:
        return np.asarray(top)
    norm = np.linalg.norm(centred, ord=p, axis=1)
    return np.asarray(np.divide(top, norm, out=np.zeros_like(top), where=norm > 0))


def nearest_neighbour(features: Floats, train: Floats, k: int = 50) -> Confidence:
    """Return −‖f̂ − f̂₍ₖ₎‖², the distance of unit features to the k-th nearest training image."""
    query, known = unit(features), unit(train)
    k = min(k, len(known))
    parts = np.array_split(query, max(1, len(query) * len(known) // 20_000_000))
    similar = [np.partition(part @ known.T, len(known) - k, axis=1)[:, len(known) - k] for part in parts]
    return np.asarray(2 * np.concatenate(similar) - 2)


def unit(features: Floats) -> NDArray[np.float64]:
    f = np.asarray(features, np.float64)
    return np.asarray(f / np.maximum(np.linalg.norm(f, axis=1, keepdims=True), 1e-12))


def mahalanobis(features: Floats, train: Floats, labels: NDArray[np.int64]) -> Confidence:
    """Return −min_c (f−μ_c)ᵀ Σ⁺ (f−μ_c) with class means and one covariance of the training features."""
    return centre_closeness(features, *class_centres(train, labels))


def class_centres(train: Floats, labels: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the class means μ_c of features, and Σ⁺ of their covariance about them."""
    known = np.asarray(train, np.float64)
    means = np.stack([known[labels == c].mean(axis=0) for c in np.unique(labels)])
    centred = known - means[np.unique(labels, return_inverse=True)[1]]
    return means, np.linalg.pinv(centred.T @ centred / len(known), hermitian=True)


def centre_closeness(features: Floats, means: Floats, precision: Floats) -> Confidence:
    """Return −min_c (f−μ_c)ᵀ P (f−μ_c)."""
    f = np.asarray(features, np.float64)
    distances = [((f - mean) @ precision * (f - mean)).sum(axis=1) for mean in means]
    return np.asarray(-np.min(distances, axis=0))


TITLES = {
    "SR": "softmax response, ranked by its log-odds",
    "abstention": "the method's own abstention output, −log p(abstain)",
    "selection": "the method's own selection head",
    "learnt uncertainty": "minus the uncertainty that a second stage has learnt beside a frozen network",
    "variance": "minus the variance of the predicted class's probability over stochastic passes",
    "mutual information": "minus the mutual information between prediction and stochastic pass",
    "margin": "difference of the two largest probabilities",
    "entropy": "minus the entropy of the class probabilities",
    "max logit": "the largest logit",
    "energy": "log-sum-exp of the logits",
    "DOCTOR": "−(1−g)/g with g the sum of squared probabilities",
    "pNorm": "largest centred logit over the logits' p-norm; p by validation AURC, SR if none is better",
    "kNN": "closeness to the 50th nearest training feature (needs --keep-features)",
    "Mahalanobis": "closeness to the nearest class mean of the training features (needs --keep-features)",
    "cosine logit": "the largest logit over the norm of the logits",
    "disagreement": "minus the weighted disagreement of earlier states of the network with its last; equal ones by SR",
    "logit margin": "difference of the two largest logits",
    "normalised margin": "difference of the predicted class's logit and the next, each over the norm of its weights",
    "GEN": "minus the sum of p^0.1 (1−p)^0.1 over the 100 largest probabilities",
    "Rel-U": "−pᵀDp, D from which classes go together in wrong and in right validation images",
    "delta kNN": "nearer to right than to wrong validation features, 25 neighbours each (needs --keep-features)",
    "delta Mahalanobis": "nearer to class means of right than of wrong validation features (needs --keep-features)",
    "SIRC": "softmax response, less where the norm of the features is small (needs --keep-features)",
    "ViM": "log-sum-exp of the logits minus the norm of what leaves the features' subspace (needs --keep-features)",
    "temperature": "softmax response at the temperature with the lowest validation AURC, SR if none is better",
}
