"""What ensembles share: the mean of the members' probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from benchmark.interface import Combination, Derived, Evidence, Floats, Prediction, Stored


def log_mean_probability(logits: Sequence[Floats]) -> Floats:
    """Return log( (1/M) Σ_m softmax(u_m) ): logits whose softmax is the mean probability."""
    log_p = log_softmax(np.asarray(logits, np.float64), axis=2)
    return np.asarray(logsumexp(log_p, axis=0) - np.log(len(logits)))


class Ensemble(Derived):
    computed_as = "mean probability"

    @staticmethod
    def combine(config: Any, predictions: Sequence[Stored], validation: Sequence[Evidence]) -> Combination:
        return Combination(Prediction(log_mean_probability([prediction.logits for prediction in predictions])))
