"""Measure an evaluation set in its parts. Pure numpy: can be repeated from what is stored.

Of each image a confidence for each score and a loss are enough. Thresholds are set elsewhere, before a set is looked
at; only groups of the test images are compared at thresholds of these images themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmark.base.rows import choose_rows
from benchmark.measure import metrics
from benchmark.measure.evaluate import Ranking, predicted_classes
from benchmark.measure.prediction import CONFIDENCE, LARGEST_P, Evidence, Floats, Prediction, Stored
from benchmark.measure.scores import softmax_response
from benchmark.measure.sets.parts import CLEAN, PART, Kept, PartMeasures, SetMeasures

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]
Thresholds = Mapping[str, float]
"""By coverage in per cent: the lowest confidence that is kept."""
SHIFTED, TOGETHER, NEW, BALANCED = "shifted", f"{CLEAN} + shifted", "new", "balanced"
WITH_NEW = f"{CLEAN} + {NEW}"


@dataclass(frozen=True)
class StoredPart:
    """A part of a set whose predictions are stored."""

    name: str
    kind: str = ""
    severity: int | None = None


@dataclass(frozen=True)
class Judged:
    """Images with a confidence and a loss each."""

    confidence: Array
    loss: Array

    def of(self, rows: Rows | NDArray[np.int64]) -> "Judged":
        return Judged(self.confidence[rows], self.loss[rows])

    def repeated(self, count: int) -> "Judged":
        """Return so many images: each as often as the others, or once more where that does not come out even."""
        return self.of(np.arange(count) * len(self.loss) // count)

    def and_also(self, others: Sequence["Judged"]) -> "Judged":
        parts = [self, *others]
        return Judged(np.concatenate([p.confidence for p in parts]), np.concatenate([p.loss for p in parts]))

    @cached_property
    def ranked(self) -> Array:
        return metrics.ranked_loss(self.confidence, self.loss)


def judged(evidence: Evidence, score: str) -> Judged:
    """Return the images of a run with the confidences that are stored beside its predictions."""
    confidence = np.asarray(evidence.prediction.aux[f"{CONFIDENCE}{score}"], np.float64)
    return Judged(confidence, Ranking(score, confidence, evidence).error)


def without_logits(evidence: Evidence, confidences: Mapping[str, Array], new_class: int | None = None) -> Evidence:
    """Return classes and confidences of a prediction, and the largest probabilities: all that a set is measured by.

    `new_class` is the label that all images of a new class get.
    """
    predicted = None if evidence.loss is not None else smallest(predicted_classes(evidence))
    labels = smallest(evidence.labels if new_class is None else np.full(evidence.num_samples, new_class))
    aux: dict[str, Floats] = {f"{CONFIDENCE}{name}": np.asarray(each, np.float64) for name, each in confidences.items()}
    if evidence.has_logits:
        aux[LARGEST_P] = largest_probabilities(evidence.prediction)
    known = Prediction(np.zeros((evidence.num_samples, 0), np.float32), aux=aux)
    return Evidence(known, labels, evidence.posterior, evidence.ids, predicted=predicted, loss=evidence.loss)


def largest_probabilities(prediction: Stored) -> Floats:
    """Return max_j p_j of each image. Shares of votes stay as they are: 0.9 is not 0.9 in half the digits."""
    if prediction.probabilities is not None:
        return np.asarray(prediction.probabilities.max(axis=1))
    return metrics.by_rows(lambda logits: expit(softmax_response(logits)), prediction.logits).astype(np.float32)


def smallest(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers from 0 on in the smallest type that has all of them: a set has many images."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def joined(parts: Sequence[Evidence]) -> Evidence:
    """Return the images of several parts as one prediction, with a column that numbers the parts."""
    first = parts[0].prediction.aux
    aux = {name: np.concatenate([part.prediction.aux[name] for part in parts]) for name in first}
    count = [part.num_samples for part in parts]
    predicted = np.concatenate([np.asarray(part.predicted) for part in parts])
    return Evidence(
        Prediction(np.zeros((sum(count), 0), np.float32), aux=aux),
        np.concatenate([part.labels for part in parts]),
        predicted=predicted,
        groups={PART: np.repeat(np.arange(len(parts), dtype=np.int16), count)},
    )


def rows_of(pool: Evidence, rows: NDArray[np.int64]) -> Evidence:
    """Return some of the images of a prediction without logits."""
    aux = {name: each[rows] for name, each in pool.prediction.aux.items()}
    nothing = np.zeros((len(rows), 0), np.float32)
    return Evidence(Prediction(nothing, aux=aux), pool.labels[rows], predicted=np.asarray(pool.predicted)[rows])


def at_share(known: int, new: int, share: float) -> tuple[int, int]:
    """Return how many of the known and of the new images are taken, such that the new ones are that share of all."""
    of_new = max(1, min(new, int(known * share / (1 - share) + 1e-9)))
    return max(1, min(known, round(of_new * (1 - share) / share))), of_new


def with_new(clean: Evidence, new: Evidence, share: float) -> tuple[Evidence, tuple[StoredPart, ...]]:
    """Return test images together with images of new classes, which are that share of all, and both as parts."""
    counts = at_share(clean.num_samples, new.num_samples, share)
    chosen = [rows_of(each, choose_rows(each.num_samples, n)) for each, n in zip((clean, new), counts, strict=True)]
    return joined(chosen), (StoredPart(CLEAN), StoredPart(NEW))


def thresholds_for(confidence: Array, coverages: Sequence[float]) -> dict[str, float]:
    """Return the threshold of each coverage: with it, at least that share of these images is kept."""
    descending = -np.sort(-confidence)
    counts = metrics.kept(np.asarray(coverages) / 100, len(confidence))
    return {f"{c:g}": float(descending[k - 1]) for c, k in zip(coverages, counts, strict=True)}


def kept_at(images: Judged, thresholds: Thresholds) -> dict[str, Kept]:
    """Return what each threshold keeps of some images."""
    found = {}
    for coverage, threshold in thresholds.items():
        kept = images.confidence >= threshold
        found[coverage] = Kept(float(kept.mean()), float(images.loss[kept].mean()) if kept.any() else None)
    return found


def part_measures(
    images: Judged,
    kept: Mapping[str, Kept],
    part: StoredPart,
    *,
    curve: bool = False,
    auroc_right: float | None = None,
    auroc_wrong: float | None = None,
) -> PartMeasures:
    """Return the measures of some images; with their whole curve where they are several parts together."""
    auroc = metrics.failure_auroc(images.confidence, images.loss) if is_right_or_wrong(images.loss) else np.nan
    return PartMeasures(
        len(images.loss),
        float(images.loss.mean()),
        metrics.mean_risk(images.ranked),
        metrics.mean_generalised_risk(images.ranked),
        None if np.isnan(auroc) else auroc,
        metrics.curve(images.ranked) if curve else None,
        kept,
        part.kind,
        part.severity,
        auroc_right,
        auroc_wrong,
    )


def is_right_or_wrong(loss: Array) -> bool:
    return bool(((loss == 0) | (loss == 1)).all())


def of_shift(
    pool: Evidence, clean: Evidence, stored: Sequence[StoredPart], thresholds: Thresholds, score: str
) -> dict[str, PartMeasures]:
    """Measure each part, the parts of each severity together, all of them, and all of them with the clean images.

    In the last, each severity counts as much as the clean images do, which are severity 0.
    """
    images, own, number = judged(pool, score), judged(clean, score), pool.groups[PART]
    severities = sorted({part.severity for part in stored if part.severity is not None})

    def measured(rows: Judged, part: StoredPart, curve: bool = True) -> PartMeasures:
        return part_measures(rows, kept_at(rows, thresholds), part, curve=curve)

    found = {CLEAN: measured(own, StoredPart(CLEAN, severity=0 if severities else None))}
    levels = []
    for severity in severities:
        level = images.of(np.isin(number, [i for i, part in enumerate(stored) if part.severity == severity]))
        levels.append(level)
        found[f"severity {severity}"] = measured(level, StoredPart("", severity=severity))
    for i, part in enumerate(stored):
        if part.name not in (*found, SHIFTED):
            found[part.name] = measured(images.of(number == i), part, curve=False)
    found[SHIFTED] = measured(images, StoredPart(SHIFTED))
    largest = max(len(level.loss) for level in (own, *levels))
    evened = [level.repeated(largest) for level in (own, *levels)] if levels else [own, images]
    found[TOGETHER] = measured(evened[0].and_also(evened[1:]), StoredPart(TOGETHER))
    return found


def of_new(
    pool: Evidence, clean: Evidence, stored: Sequence[StoredPart], thresholds: Thresholds, score: str
) -> dict[str, PartMeasures]:
    """Measure the test images, those of new classes, and both together, where to accept a new one is an error."""
    together, own = judged(pool, score), judged(clean, score)
    new = together.of(pool.groups[PART] == [part.name for part in stored].index(NEW))
    told = [told_apart(own.confidence[own.loss == loss], new.confidence) for loss in (0, 1)]
    return {
        CLEAN: part_measures(own, kept_at(own, thresholds), StoredPart(CLEAN), curve=True),
        NEW: part_measures(new, kept_at(new, thresholds), StoredPart(NEW), auroc_right=told[0], auroc_wrong=told[1]),
        WITH_NEW: part_measures(together, kept_at(together, thresholds), StoredPart(WITH_NEW), curve=True),
    }


def told_apart(known: Array, new: Array) -> float | None:
    """Return the AUROC of known images against new ones, which should be less confident."""
    is_new = np.repeat([0.0, 1.0], [len(known), len(new)])
    auroc = metrics.failure_auroc(np.concatenate([known, new]), is_new)
    return None if np.isnan(auroc) else auroc


def of_groups(pool: Evidence, coverages: Sequence[float], score: str) -> dict[str, PartMeasures]:
    """Measure each group of the test images. At a coverage, all groups have the threshold of all images together."""
    images = judged(pool, score)
    weights = {f"{c:g}": metrics.kept_weights(images.confidence, c / 100) for c in coverages}
    found = {CLEAN: part_measures(images, weighed(images, weights, slice(None)), StoredPart(CLEAN), curve=True)}
    for column, values in pool.groups.items():
        for value in np.unique(values):
            rows = values == value
            name = f"{column} = {value}"
            kept = weighed(images, weights, rows)
            found[name] = part_measures(images.of(rows), kept, StoredPart(name, column))
    if len(pool.labels):
        found[BALANCED] = balanced(images, weights, pool.labels)
    return found


def balanced(images: Judged, weights: Mapping[str, Array], labels: NDArray[np.int64]) -> PartMeasures:
    """Return the means over classes of coverage, risk and error; what ranks is that of all images."""
    classes = [labels == label for label in np.unique(labels)]
    by_class = [weighed(images, weights, rows) for rows in classes]
    kept = {c: mean_kept([of_class[c] for of_class in by_class]) for c in weights}
    error = float(np.mean([images.loss[rows].mean() for rows in classes]))
    return replace(part_measures(images, kept, StoredPart(BALANCED)), error=error)


def weighed(images: Judged, weights: Mapping[str, Array], rows: Rows | slice) -> dict[str, Kept]:
    """Return what is kept of some images, given how much of each of all images is kept at each coverage."""
    loss, found = images.loss[rows], {}
    for coverage, weight in weights.items():
        kept = weight[rows]
        total = float(kept.sum())
        found[coverage] = Kept(float(kept.mean()), float(kept @ loss) / total if total > 0 else None)
    return found


def mean_kept(kept: Sequence[Kept]) -> Kept:
    """Return the mean coverage and risk of classes; those of which nothing is kept have no risk."""
    risks = [each.risk for each in kept if each.risk is not None]
    return Kept(float(np.mean([each.coverage for each in kept])), float(np.mean(risks)) if risks else None)


Formula = Callable[[Evidence, Evidence, Sequence[StoredPart], Thresholds, str], dict[str, PartMeasures]]
FORMULAS: dict[str, Formula] = {"corruptions": of_shift, "shift": of_shift, "new": of_new}


def measure_set(
    kind: str,
    pool: Evidence,
    clean: Evidence,
    stored: Sequence[StoredPart],
    thresholds: Mapping[str, Thresholds],
    coverages: Sequence[float],
    no_thresholds: str = "",
) -> SetMeasures:
    """Return what is measured of a set beside the measures of all its images together.

    `pool` are these, `clean` the test images of the task; of both, the confidences that are stored beside the
    predictions are read. `thresholds` are by score, for coverages in per cent.
    """
    stored_scores = [name for name in pool.prediction.aux if name.startswith(CONFIDENCE)]
    scores = [name.removeprefix(CONFIDENCE) for name in stored_scores if name in clean.prediction.aux]
    parts: dict[str, dict[str, PartMeasures]] = {}
    for score in scores:
        if kind in FORMULAS:
            parts[score] = FORMULAS[kind](pool, clean, stored, thresholds.get(score, {}), score)
        elif kind == "groups":
            parts[score] = of_groups(pool, coverages, score)
        else:
            own = judged(clean, score)
            parts[score] = {CLEAN: part_measures(own, {}, StoredPart(CLEAN), curve=True)}
    names = tuple(part.name for part in stored)
    carried = (thresholds, no_thresholds) if kind in FORMULAS else ({}, "")
    return SetMeasures(kind, parts, names, *carried)
