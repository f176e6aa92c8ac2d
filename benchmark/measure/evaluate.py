"""Compute the measures of a run from prediction and labels. Pure numpy: can be repeated from stored predictions.

To add a measure: a field in `measures.py`, its formula in one of the tables here, and a row in `tables/build.py`.
Finished runs get it from their stored predictions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.units import counted
from benchmark.measure import metrics
from benchmark.measure.measures import ClassifierMeasures, Measures, ScoreMeasures
from benchmark.measure.prediction import LARGEST_P, Evidence, Prediction, Stored
from benchmark.measure.scores import Confidence, as_public_codes

CLASS_COVERAGES = (90, 80, 70, 50)
"""In per cent: the coverages at which a record keeps the share of each class."""
RISKS = (1, 2, 5)
"""In per cent: the bounds of the risk for which a record keeps the largest coverage."""
COST_RATIOS = (1, 2, 5, 10, 20, 50)
"""What a rejection costs, in per cent of what an error costs: the ratios that tables show."""
ORACLE = "oracle"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Classified:
    """Logits and labels, as the measures of a classifier read them."""

    logits: NDArray[np.floating]
    labels: NDArray[np.int64]
    given: NDArray[np.floating] | None = None
    """Probabilities as an imported run has them: through logits, some would tie or leave their bin."""

    @cached_property
    def error(self) -> NDArray[np.bool_]:
        table = self.logits if self.given is None else self.given
        return np.asarray(table.argmax(axis=1) != self.labels)

    @cached_property
    def likelihoods(self) -> metrics.Likelihoods:
        return metrics.likelihoods(self.logits, self.labels)

    @cached_property
    def probability(self) -> NDArray[np.floating]:
        return self.likelihoods.largest_p if self.given is None else self.given.max(axis=1)


@dataclass(frozen=True)
class Ranking:
    """Predicted images with a confidence each, as the measures of a score read them."""

    name: str
    confidence: Confidence
    evidence: Evidence

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        return predicted_classes(self.evidence)

    @cached_property
    def error(self) -> Floats:
        """Return 1 where the prediction is wrong, else 0; in a task without classes, the loss from 0 to 1."""
        if self.evidence.loss is not None:
            return self.evidence.loss
        return np.asarray(self.predicted != self.evidence.labels, dtype=np.float64)

    @cached_property
    def is_right_or_wrong(self) -> bool:
        """Tell whether every loss is 0 or 1."""
        return bool(((self.error == 0) | (self.error == 1)).all())

    @cached_property
    def optimum(self) -> float:
        """Return the AURC of a perfect ranking of the same losses."""
        if self.is_right_or_wrong:
            return metrics.optimal_aurc(int(self.error.sum()), len(self.error))
        return metrics.aurc(-self.error, self.error)

    @cached_property
    def auroc(self) -> float | None:
        """Return the AUROC of failures; None where there is only one kind, or losses between 0 and 1."""
        found = metrics.failure_auroc(self.confidence, self.error) if self.is_right_or_wrong else np.nan
        return None if np.isnan(found) else found

    @cached_property
    def naurc(self) -> float | None:
        return unless_nan(
            float(metrics.normalised_aurc(metrics.mean_risk(self.ranked), self.optimum, self.error.mean()))
        )

    def of_errors(self, formula: Callable[[Confidence, Floats], float]) -> float | None:
        """Return a measure of two kinds, right and wrong; None where there is one, or losses between 0 and 1."""
        return unless_nan(formula(self.confidence, self.error)) if self.is_right_or_wrong else None

    @cached_property
    def expected(self) -> Floats | None:
        """Return 1 − P(ŷ|x), where P is known."""
        posterior = self.evidence.posterior
        return None if posterior is None else 1 - posterior[np.arange(len(self.predicted)), self.predicted]

    @cached_property
    def ranked(self) -> Floats:
        return metrics.ranked_loss(self.confidence, self.error)

    @cached_property
    def ranked_expected(self) -> Floats | None:
        return None if self.expected is None else metrics.ranked_loss(self.confidence, self.expected)

    @cached_property
    def percentile(self) -> tuple[Floats, Floats]:
        return metrics.percentile_risk(self.public, self.error, metrics.CURVE_COVERAGES)

    @cached_property
    def public(self) -> NDArray[np.floating]:
        """Return the confidence in the precision in which the public codes rank it; they have no oracle."""
        if self.name == ORACLE:
            return self.confidence
        return as_public_codes(self.name, self.confidence, self.evidence.prediction)

    @cached_property
    def class_coverage(self) -> dict[str, list[float | None]] | None:
        """Return the share kept of each class at a few coverages, by the coverage in per cent; None without classes."""
        labels = self.evidence.labels
        if not len(labels):
            return None
        num_classes = self.evidence.prediction.logits.shape[1] or int(max(labels.max(), self.predicted.max())) + 1
        found = {c: metrics.class_coverage(self.confidence, labels, num_classes, c / 100) for c in CLASS_COVERAGES}
        return {f"{c}": [None if np.isnan(x) else round(float(x), 6) for x in each] for c, each in found.items()}


def unless_nan(value: float) -> float | None:
    return None if np.isnan(value) else value


OF_CLASSIFIERS: dict[str, Callable[[Classified], Any]] = {
    "accuracy": lambda c: float(1 - c.error.mean()),
    "nll": lambda c: float(-c.likelihoods.label_log_p.mean()),
    "brier": lambda c: float(c.likelihoods.squared_distance.mean()),
    "ece": lambda c: metrics.ece(c.probability, c.error),
    "chow_cost": lambda c: metrics.chow_cost_curve(c.probability, c.error),
}
OF_SCORES: dict[str, Callable[[Ranking], Any]] = {
    "risk": lambda r: metrics.curve(r.ranked),
    "aurc": lambda r: metrics.mean_risk(r.ranked),
    "e_aurc": lambda r: metrics.mean_risk(r.ranked) - r.optimum,
    "augrc": lambda r: metrics.mean_generalised_risk(r.ranked),
    "auroc": lambda r: r.auroc,
    "top_ties": lambda r: metrics.top_ties(r.confidence),
    "expected_risk": lambda r: None if r.ranked_expected is None else metrics.curve(r.ranked_expected),
    "expected_aurc": lambda r: None if r.ranked_expected is None else metrics.mean_risk(r.ranked_expected),
    "percentile_risk": lambda r: r.percentile[0].tolist(),
    "percentile_coverage": lambda r: r.percentile[1].tolist(),
    "class_coverage": lambda r: r.class_coverage,
    "naurc": lambda r: r.naurc,
    "coverage_at_risk_1": lambda r: metrics.largest_coverage(r.ranked, 0.01),
    "coverage_at_risk_2": lambda r: metrics.largest_coverage(r.ranked, 0.02),
    "coverage_at_risk_5": lambda r: metrics.largest_coverage(r.ranked, 0.05),
    "fpr95": lambda r: r.of_errors(metrics.fpr_at_tpr),
    "aupr": lambda r: r.of_errors(metrics.failure_aupr),
    "cost": lambda r: metrics.cost_curve(r.ranked),
    "expected_cost": lambda r: None if r.ranked_expected is None else metrics.cost_curve(r.ranked_expected),
}


def measure(evidence: Evidence, scores: Mapping[str, Confidence]) -> Measures:
    """Return what a record keeps of a run: measures of the classifier, of each score, and of the oracle if known."""
    return Measures(
        measure_classifier(evidence),
        measure_scores(evidence, scores),
        evidence.num_samples,
        oracle=None if evidence.posterior is None else measure_oracle(evidence.posterior, evidence.labels),
    )


def measure_classifier(evidence: Evidence) -> ClassifierMeasures:
    """Return what can be measured without a score: of predicted classes not much, of losses nothing."""
    prediction, labels = evidence.prediction, np.asarray(evidence.labels)
    if evidence.loss is not None:
        return ClassifierMeasures()
    if not evidence.has_logits:
        right, known = predicted_classes(evidence) == labels, prediction.aux.get(LARGEST_P)
        chow = None if known is None else metrics.chow_cost_curve(known, ~right)
        return ClassifierMeasures(accuracy=float(right.mean()), chow_cost=chow)
    classified = Classified(prediction.logits, labels, prediction.probabilities)
    return ClassifierMeasures(**{name: formula(classified) for name, formula in OF_CLASSIFIERS.items()})


def predicted_classes(evidence: Evidence) -> NDArray[np.int64]:
    """Return the predicted class of each sample; of equal probabilities, the first."""
    if evidence.predicted is not None:
        return evidence.predicted
    prediction = evidence.prediction
    table = prediction.logits if prediction.probabilities is None else prediction.probabilities
    return np.asarray(table.argmax(axis=1))


def measure_scores(evidence: Evidence, scores: Mapping[str, Confidence]) -> dict[str, ScoreMeasures]:
    """Return the measures of each score by its name."""
    for name, confidence in scores.items():
        if (lost := int(np.sum(~np.isfinite(confidence)))) > 0:
            raise ValueError(f"the score {name} is not finite for {counted(lost, 'image')}")
    return {name: measure_ranking(Ranking(name, confidence, evidence)) for name, confidence in scores.items()}


def measure_ranking(ranking: Ranking) -> ScoreMeasures:
    return ScoreMeasures(**{name: formula(ranking) for name, formula in OF_SCORES.items()})


def measure_oracle(posterior: Floats, labels: NDArray[np.int64]) -> ScoreMeasures:
    """Measure the Bayes class ranked by Bayes confidence: no method's expected risk is lower at any coverage."""
    bayes: Stored = Prediction(posterior)
    return measure_ranking(Ranking(ORACLE, posterior.max(axis=1), Evidence(bayes, labels, posterior)))
