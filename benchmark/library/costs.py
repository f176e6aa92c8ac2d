"""Costs of errors and rejections on your own numbers: lists, arrays, pandas columns or torch tensors.

An error costs 1, a rejection `ratio`, from 0 to 1: what is returned is the mean cost of a sample. All else is as in
`metrics`.
"""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.library.arrays import Array, one_share, shares
from benchmark.library.metrics import predicted_errors, ranked_losses
from benchmark.measure import metrics

__all__ = ["best_cost", "chow_cost", "threshold_costs"]


def __dir__() -> list[str]:
    """Return what a notebook completes: the public functions alone."""
    return __all__


def threshold_costs(confidence: ArrayLike, loss: ArrayLike, ratio: float) -> tuple[Array, Array]:
    """Return the coverages 0, 1/n … 1 and the cost at each, ready to be drawn.

    >>> coverage, cost = threshold_costs([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], 0.2)
    >>> coverage, cost.round(3)
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.2 , 0.15, 0.35, 0.3 , 0.5 ]))
    """
    errors = metrics.errors_kept(metrics.ranked_loss(*ranked_losses(confidence, loss)))
    return np.arange(len(errors)) / (len(errors) - 1), metrics.threshold_costs(errors, one_share(ratio, "ratio"))


def best_cost(confidence: ArrayLike, loss: ArrayLike, ratio: ArrayLike) -> float | Array:
    """Return the cost by the best threshold, chosen on these samples: a number for one ratio, an array for several.

    >>> best_cost([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], [0.2, 0.5])
    array([0.15 , 0.375])
    """
    ranked, ratios = metrics.ranked_loss(*ranked_losses(confidence, loss)), shares(ratio, "ratio")
    return number_or_array(metrics.best_costs(ranked, np.atleast_1d(ratios)), ratios)


def chow_cost(probability: ArrayLike, error: ArrayLike, ratio: ArrayLike) -> float | Array:
    """Return the cost by Chow's rule: keep where the largest class probability is at least 1 − ratio.

    >>> chow_cost([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], [0.15, 0.35])
    array([0.1125, 0.3375])
    """
    ratios = shares(ratio, "ratio")
    return number_or_array(metrics.chow_costs(*predicted_errors(probability, error), np.atleast_1d(ratios)), ratios)


def number_or_array(values: Array, asked: Array) -> float | Array:
    """Return an array only if several were asked for."""
    return values if asked.ndim else float(values[0])
