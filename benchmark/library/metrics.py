"""Metrics of selective classification on your own numbers: lists, arrays, pandas columns or torch tensors.

`confidence`: a number per sample, larger = kept first. `error`: 1 (or True) where the prediction is wrong, else 0.
`loss`: the same, or an expected error from 0 to 1. `coverage`: the share kept, above 0 and up to 1. Samples with equal
confidence count with their mean loss. Everything is a fraction, never per cent; a ValueError says what is wrong.
"""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.library.arrays import (
    Array,
    Labels,
    coverages,
    error_vector,
    label_vector,
    logits_table,
    loss_vector,
    one_coverage,
    one_share,
    same_length,
    vector,
    whole,
    within,
)
from benchmark.measure import metrics
from benchmark.measure.evaluate import OF_CLASSIFIERS, RISKS, Classified

__all__ = [
    "accuracy",
    "augrc",
    "aurc",
    "brier",
    "class_coverage",
    "classifier_metrics",
    "coverage_at_risk",
    "e_aurc",
    "ece",
    "failure_aupr",
    "failure_auroc",
    "fpr_at_tpr",
    "naurc",
    "nll",
    "optimal_aurc",
    "percentile_risk",
    "ranking_metrics",
    "risk_curve",
    "selective_risk",
    "top_ties",
]


def __dir__() -> list[str]:
    """Return what a notebook completes: the public functions alone."""
    return __all__


def ranked_losses(confidence: ArrayLike, loss: ArrayLike) -> tuple[Array, Array]:
    checked = vector(confidence, "confidence"), loss_vector(loss)
    same_length(confidence=checked[0], loss=checked[1])
    return checked


def ranked_errors(confidence: ArrayLike, error: ArrayLike) -> tuple[Array, Array]:
    checked = vector(confidence, "confidence"), error_vector(error)
    same_length(confidence=checked[0], error=checked[1])
    return checked


def classified(logits: ArrayLike, labels: ArrayLike) -> tuple[Array, Labels]:
    table = logits_table(logits)
    classes = label_vector(labels, table.shape[1])
    same_length(logits=table, labels=classes)
    return table, classes


def aurc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return the area under the risk–coverage curve: the mean selective risk over the coverages 1/n, 2/n … 1.

    >>> round(aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.333333
    """
    return metrics.aurc(*ranked_losses(confidence, loss))


def e_aurc(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return the AURC minus that of a perfect ranking of the same errors.

    >>> round(e_aurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.125
    """
    return metrics.e_aurc(*ranked_errors(confidence, error))


def naurc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return the AURC between that of a perfect ranking (0) and of a random one (1); NaN where all losses are alike.

    >>> round(naurc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.428571
    """
    return metrics.naurc(*ranked_losses(confidence, loss))


def optimal_aurc(num_errors: int, n: int) -> float:
    """Return the AURC of a perfect ranking of n samples of which so many are wrong.

    >>> round(optimal_aurc(2, 4), 6)
    0.208333
    """
    samples, errors = whole(n, "n", 1), whole(num_errors, "num_errors", 0)
    if errors > samples:
        raise ValueError(f"num_errors: expected at most n = {samples:,}, got {errors:,}")
    return metrics.optimal_aurc(errors, samples)


def augrc(confidence: ArrayLike, loss: ArrayLike) -> float:
    """Return the area under the generalised risk–coverage curve: errors kept as a share of all samples.

    >>> augrc([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1])
    0.125
    """
    return metrics.augrc(*ranked_losses(confidence, loss))


def failure_auroc(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return the probability that a right sample is more confident than a wrong one; NaN if there is only one kind.

    >>> failure_auroc([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.75
    """
    return metrics.failure_auroc(*ranked_errors(confidence, error))


def failure_aupr(confidence: ArrayLike, error: ArrayLike) -> float:
    """Return the average precision of errors, the least confident found first; NaN if there is only one kind.

    >>> round(failure_aupr([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]), 6)
    0.833333
    """
    return metrics.failure_aupr(*ranked_errors(confidence, error))


def fpr_at_tpr(confidence: ArrayLike, error: ArrayLike, tpr: float = 0.95) -> float:
    """Return the share of wrong samples kept, by the strictest threshold that keeps a share of the right ones.

    Samples with the confidence of the threshold are kept. NaN if there is only one kind.

    >>> fpr_at_tpr([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    0.5
    """
    return metrics.fpr_at_tpr(*ranked_errors(confidence, error), one_share(tpr, "tpr"))


def coverage_at_risk(confidence: ArrayLike, loss: ArrayLike, risk: float) -> float:
    """Return the largest coverage whose selective risk is not above a bound; 0 if there is none.

    It is the selective accuracy constraint (SAC) at the accuracy 1 − risk.

    >>> coverage_at_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], 0.4)
    0.75
    """
    return metrics.coverage_at_risk(*ranked_losses(confidence, loss), one_share(risk, "risk"))


def predicted_errors(probability: ArrayLike, error: ArrayLike) -> tuple[Array, Array]:
    checked = within(vector(probability, "probability"), "probability", 0, 1), error_vector(error)
    same_length(probability=checked[0], error=checked[1])
    return checked


def selective_risk(confidence: ArrayLike, loss: ArrayLike, coverage: ArrayLike) -> float | Array:
    """Return the mean loss of the ⌈c·n⌉ most confident samples: a number for one coverage, an array for several.

    >>> selective_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], 0.5)
    0.5
    >>> selective_risk([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1], [0.25, 1])
    array([0. , 0.5])
    """
    risk = metrics.selective_risk(*ranked_losses(confidence, loss), coverages(coverage))
    return risk if risk.ndim else float(risk)


def risk_curve(confidence: ArrayLike, loss: ArrayLike) -> tuple[Array, Array]:
    """Return the coverages 1/n, 2/n … 1 and the selective risk at each, ready to be drawn.

    >>> coverage, risk = risk_curve([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    >>> coverage, risk.round(3)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.   , 0.5  , 0.333, 0.5  ]))
    """
    risk = metrics.risk_curve(metrics.ranked_loss(*ranked_losses(confidence, loss)))
    return np.arange(1, len(risk) + 1) / len(risk), risk


def percentile_risk(confidence: ArrayLike, loss: ArrayLike, coverage: ArrayLike) -> tuple[Array, Array]:
    """Return risks and the coverages really kept, where all at or above the (1 − c) percentile are kept.

    This is the rule of many public codes. Of samples with equal confidence it keeps all, so maybe more than c.

    >>> percentile_risk([0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1], [0.5, 1])
    (array([0.33333333, 0.5       ]), array([0.75, 1.  ]))
    """
    return metrics.percentile_risk(*ranked_losses(confidence, loss), coverages(coverage))


def class_coverage(confidence: ArrayLike, labels: ArrayLike, num_classes: int, coverage: float) -> Array:
    """Return the share kept of each class when a share of all samples is kept; NaN for a class without samples.

    >>> class_coverage([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 0], 2, 0.5)
    array([0.66666667, 0.        ])
    """
    classes = whole(num_classes, "num_classes", 1)
    ranked, labelled = vector(confidence, "confidence"), label_vector(labels, classes)
    same_length(confidence=ranked, labels=labelled)
    return metrics.class_coverage(ranked, labelled, classes, one_coverage(coverage))


def top_ties(confidence: ArrayLike) -> float:
    """Return the share of samples that have the highest confidence; if it is large, risks at low coverage are means.

    >>> top_ties([1.0, 1.0, 0.7, 0.6])
    0.5
    """
    return metrics.top_ties(vector(confidence, "confidence"))


def ranking_metrics(confidence: ArrayLike, error: ArrayLike) -> dict[str, float]:
    """Return all metrics of a confidence at once, by their names in records.

    >>> sorted(ranking_metrics([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1]))[:4]
    ['augrc', 'aupr', 'aurc', 'auroc']
    """
    ranked, errors = ranked_errors(confidence, error)
    return {
        "aurc": metrics.aurc(ranked, errors),
        "e_aurc": metrics.e_aurc(ranked, errors),
        "naurc": metrics.naurc(ranked, errors),
        "augrc": metrics.augrc(ranked, errors),
        "auroc": metrics.failure_auroc(ranked, errors),
        "aupr": metrics.failure_aupr(ranked, errors),
        "fpr95": metrics.fpr_at_tpr(ranked, errors),
        **{f"coverage_at_risk_{r}": metrics.coverage_at_risk(ranked, errors, r / 100) for r in RISKS},
        "top_ties": metrics.top_ties(ranked),
    }


def accuracy(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of samples whose largest logit, or probability, is that of their label.

    >>> accuracy([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]], [0, 1, 1])
    0.6666666666666667
    """
    return float(OF_CLASSIFIERS["accuracy"](Classified(*classified(logits, labels))))


def nll(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of −log p(label), p the softmax of the logits.

    >>> round(nll([[2.0, 0.0], [0.0, 1.0]], [0, 1]), 6)
    0.220095
    """
    return metrics.nll(*classified(logits, labels))


def brier(logits: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean squared distance of the class probabilities from the truth, from 0 to 2.

    >>> round(brier([[2.0, 0.0], [0.0, 1.0]], [0, 1]), 6)
    0.086539
    """
    return metrics.brier(*classified(logits, labels))


def ece(probability: ArrayLike, error: ArrayLike, bins: int = 15) -> float:
    """Return the expected calibration error of the largest class probabilities, over bins of equal width.

    >>> round(ece([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1], bins=5), 6)
    0.3
    """
    return metrics.ece(*predicted_errors(probability, error), whole(bins, "bins", 1))


def classifier_metrics(logits: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Return all metrics that need no confidence score at once: accuracy, nll, brier and ece.

    >>> sorted(classifier_metrics([[2.0, 0.0], [0.0, 1.0]], [0, 1]))
    ['accuracy', 'brier', 'ece', 'nll']
    """
    run = Classified(*classified(logits, labels))
    return {name: OF_CLASSIFIERS[name](run) for name in ("accuracy", "nll", "brier", "ece")}
