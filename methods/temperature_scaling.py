"""Temperature scaling: plain cross-entropy's logits over one temperature that validation images choose."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import kendalltau

from benchmark.interface import Combination, Derived, Evidence, Floats, Member, Prediction, Stored, softmax_response

COLDEST, HOTTEST = 0.01, 100.0


def fitted_temperature(logits: Floats, labels: NDArray[np.int64]) -> float:
    """Return argmin_T of the mean −log softmax(u/T)_y, which is convex in 1/T and searched over log T."""
    u, rows = np.asarray(logits, np.float64), np.arange(len(labels))

    def nll(log_t: float) -> float:
        return float(-log_softmax(u / np.exp(log_t), axis=1)[rows, labels].mean())

    found = minimize_scalar(nll, bounds=np.log([COLDEST, HOTTEST]), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def pairs_reordered(logits: Floats, temperature: float) -> float:
    """Return the share of image pairs that softmax response ranks otherwise: (1 − Kendall's τ)/2, 0 for two classes."""
    before, after = softmax_response(logits), softmax_response(np.asarray(logits, np.float64) / temperature)
    return float((1 - kendalltau(before, after).statistic) / 2)


class TemperatureScaling(Derived):
    title = "temperature scaling of SR by validation NLL; reports how far the ranking moves"
    reference = "Guo et al., ICML 2017"
    labels = {"Temperature scaling": {}}
    needs_validation = True
    computed_as = "over temperature"

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        return [Member("cross_entropy", seed)]

    @staticmethod
    def combine(config: Any, predictions: Sequence[Stored], validation: Sequence[Evidence]) -> Combination:
        temperature = fitted_temperature(validation[0].prediction.logits, validation[0].labels)
        logits = predictions[0].logits
        scaled = np.asarray(logits, np.float64) / temperature
        facts = {"temperature": temperature, "image pairs reordered (%)": 100 * pairs_reordered(logits, temperature)}
        return Combination(Prediction(scaled), facts)


METHOD = TemperatureScaling
