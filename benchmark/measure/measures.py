"""Define what is measured of a run: of its classifier, and of each of its scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Curve = Sequence[float]
"""At the coverages 0, 0.5, …, 100 %."""
Costs = Sequence[float]
"""For each image, in units of what an error costs. A rejection costs 0, 0.5, …, 50 % of that."""


@dataclass(frozen=True)
class ClassifierMeasures:
    """What does not depend on a score. None: not known, as the code that measured it did not have it or was mended."""

    accuracy: float | None = None
    nll: float | None = None
    brier: float | None = None
    ece: float | None = None
    chow_cost: Costs | None = None
    """By Chow's rule."""


@dataclass(frozen=True)
class ScoreMeasures:
    """What is measured of one score. None: not known, or there is no such value."""

    risk: Curve | None = None
    """Selective risk: ⌈c·n⌉ images are kept, ties by expectation."""
    aurc: float | None = None
    e_aurc: float | None = None
    expected_aurc: float | None = None
    """Of the posterior-expected risk, where the truth is known."""
    augrc: float | None = None
    auroc: float | None = None
    top_ties: float | None = None
    """Share of images that tie for the highest confidence."""
    expected_risk: Curve | None = None
    """Posterior-expected risk, where the truth is known."""
    percentile_risk: Curve | None = None
    """By the rule of the public codes: all at or above a percentile are kept."""
    percentile_coverage: Curve | None = None
    """The coverage really kept then."""
    class_coverage: Mapping[str, Sequence[float | None]] | None = None
    """By coverage in per cent: what is kept of each class."""
    naurc: float | None = None
    coverage_at_risk_1: float | None = None
    """Largest coverage with a risk of at most 1 %."""
    coverage_at_risk_2: float | None = None
    coverage_at_risk_5: float | None = None
    fpr95: float | None = None
    """Share of wrong predictions kept with 95 % of the right ones."""
    aupr: float | None = None
    """Of errors."""
    cost: Costs | None = None
    """By the best threshold."""
    expected_cost: Costs | None = None
    """By the best threshold for the posterior-expected cost, where the truth is known."""

    def curve(self, name: str) -> Curve | None:
        """Return a curve by its name in records."""
        curves = {
            "risk": self.risk,
            "expected_risk": self.expected_risk,
            "percentile_risk": self.percentile_risk,
            "percentile_coverage": self.percentile_coverage,
        }
        return curves[name]


UNKNOWN_SCORE = ScoreMeasures()


@dataclass(frozen=True)
class Measures:
    """All that is measured of a run on one set of images."""

    classifier: ClassifierMeasures
    scores: Mapping[str, ScoreMeasures]
    """The method's own, the published one first."""
    num_images: int
    further: Mapping[str, ScoreMeasures] = field(default_factory=dict)
    """Scores that were asked for later."""
    oracle: ScoreMeasures | None = None
    """Of the Bayes classifier, where the truth is known."""

    @property
    def all_scores(self) -> Mapping[str, ScoreMeasures]:
        return {**self.further, **self.scores}
