"""Compute the measures of a record from prediction and labels. Pure numpy: can be repeated from stored predictions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.units import counted
from benchmark.measure import metrics
from benchmark.measure.prediction import Evidence
from benchmark.measure.scores import Confidence, as_public_codes

CLASS_COVERAGES = (90, 80, 70, 50)
"""In per cent: the coverages at which a record keeps the share of each class."""


def measure(evidence: Evidence, scores: Mapping[str, Confidence]) -> dict[str, Any]:
    """Return what a record keeps of a run: metrics of the classifier, of each score, and of the oracle if known."""
    logits, labels = evidence.prediction.logits, evidence.labels
    measured: dict[str, Any] = {
        "classifier": metrics.classifier_metrics(logits, labels),
        "scores": measure_scores(evidence, scores),
        "num_test": len(labels),
        "coverages": np.round(100 * metrics.CURVE_COVERAGES, 6).tolist(),
    }
    if evidence.posterior is not None:
        measured["oracle"] = measure_oracle(evidence.posterior, labels)
    return measured


def measure_scores(evidence: Evidence, scores: Mapping[str, Confidence]) -> dict[str, dict[str, Any]]:
    """Return metrics and risk curve of each score; also 1 − P(ŷ|x), averaged over kept images, if P is known."""
    predicted, posterior = evidence.prediction.logits.argmax(axis=1), evidence.posterior
    error = (predicted != evidence.labels).astype(np.float64)
    expected = None if posterior is None else 1 - posterior[np.arange(len(predicted)), predicted]
    for name, confidence in scores.items():
        if not np.isfinite(confidence).all():
            raise ValueError(
                f"the score {name} is not finite for {counted(int(np.sum(~np.isfinite(confidence))), 'image')}"
            )
    num_classes = evidence.prediction.logits.shape[1]
    return {
        name: {
            **measure_score(confidence, error, expected),
            **metrics.percentile_curves(as_public_codes(name, confidence, evidence.prediction), error),
            "class_coverage": measure_classes(confidence, evidence.labels, num_classes),
        }
        for name, confidence in scores.items()
    }


def measure_classes(
    confidence: Confidence, labels: NDArray[np.int64], num_classes: int
) -> dict[str, list[float | None]]:
    """Return the share kept of each class at a few coverages, by the coverage in per cent."""
    found = {c: metrics.class_coverage(confidence, labels, num_classes, c / 100) for c in CLASS_COVERAGES}
    return {f"{c}": [None if np.isnan(x) else round(float(x), 6) for x in each] for c, each in found.items()}


def measure_score(
    confidence: Confidence, error: NDArray[np.float64], expected: NDArray[np.float64] | None
) -> dict[str, Any]:
    ranked = metrics.ranked_loss(confidence, error)
    ranking = metrics.ranking_metrics(confidence, error, ranked)
    found: dict[str, Any] = {
        **{name: None if np.isnan(value) else value for name, value in ranking.items()},
        "risk": metrics.curve(ranked),
    }
    if expected is not None:
        ranked_expected = metrics.ranked_loss(confidence, expected)
        found["expected_risk"] = metrics.curve(ranked_expected)
        found["expected_aurc"] = metrics.mean_risk(ranked_expected)
    return found


def measure_oracle(posterior: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, Any]:
    """Measure the Bayes class ranked by Bayes confidence: no method's expected risk is lower at any coverage."""
    error = (posterior.argmax(axis=1) != labels).astype(np.float64)
    confidence = posterior.max(axis=1)
    return measure_score(confidence, error, 1 - confidence) | metrics.percentile_curves(confidence, error)
