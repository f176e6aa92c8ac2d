"""Confidence scores: pure float64 functions of logits. **Larger always means more confident (kept first).**"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmark.prediction import Floats

Confidence = NDArray[np.float64]


def softmax_response(logits: Floats) -> Confidence:
    """SR = max_j p_j, as its log-odds  u_max − log Σ_{j≠max} exp(u_j).

    Strictly increasing in SR, so the ranking is the same, but without the ties that appear where the probability
    rounds to 1 (a logit gap of 17 in float32, 37 in float64).
    """
    u = np.asarray(logits, dtype=np.float64)
    top = u.argmax(axis=1)[:, None]
    others = u.copy()
    np.put_along_axis(others, top, -np.inf, axis=1)
    return np.asarray(np.take_along_axis(u, top, axis=1)[:, 0] - logsumexp(others, axis=1), dtype=np.float64)


def abstention(logits: Floats, abstain: Floats) -> Confidence:
    """−log p_{k+1} with p = softmax over classes and the abstention output: log(1 + exp(logsumexp(u) − u_{k+1}))."""
    u = np.asarray(logits, dtype=np.float64)
    gap = logsumexp(u, axis=1) - np.asarray(abstain, dtype=np.float64)
    return np.asarray(np.logaddexp(0.0, gap), dtype=np.float64)


TITLES = {
    "SR": "softmax response, ranked by its log-odds",
    "abstention": "the method's own abstention output, −log p(abstain)",
}
