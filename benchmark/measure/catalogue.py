"""Name the scores that a finished run can be read with. What must be fitted is fitted on validation or training images.

A score is a function of a finished run that returns a confidence for each test image, larger where it is kept first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark.base import added
from benchmark.base.added import Added
from benchmark.base.errors import brief
from benchmark.measure import fitted, scores
from benchmark.measure.metrics import aurc, by_rows
from benchmark.measure.prediction import CONFIDENCE, Classifier, Evidence, Floats, Stored
from benchmark.measure.scores import Confidence

EXPONENTS = range(10)
NO_FEATURES = (
    "it needs features, which --keep-features stores and an imported run may bring (features, train.features); "
    "means of several passes or networks have none"
)
NO_LOGITS = "it needs logits or class probabilities, and the run was imported without"
NO_CONSTANT = "it needs logits, and the run was imported with probabilities, which leave a constant of them open"
NO_CLASSIFIER = (
    "it needs the weights of the last layer, which a training on one device stores at its end if logits are these "
    "weights times the features; older runs, imported ones, and means of several passes or networks have none"
)
ONE_KIND = "it needs right and wrong predictions among the validation images, and all of them are {}"
NOT_KNOWN = "not known here; if it is in a file of your own, add --plugin FILE.py"


class Unavailable(Exception):
    """A run has no value of a score or a measure; the text says why."""


class FinishedRun(Protocol):
    """What is stored of a run. To read what is not there raises Unavailable."""

    @property
    def test(self) -> Evidence: ...
    @property
    def validation(self) -> Evidence: ...
    @property
    def train(self) -> Evidence: ...
    @property
    def classifier(self) -> Classifier: ...


Score = Callable[[FinishedRun], Confidence]


@dataclass(frozen=True)
class Predicted:
    """A run of which only the prediction of the test images is at hand."""

    test: Evidence

    @property
    def validation(self) -> Evidence:
        raise Unavailable("it needs validation images")

    @property
    def train(self) -> Evidence:
        raise Unavailable(NO_FEATURES)

    @property
    def classifier(self) -> Classifier:
        raise Unavailable(NO_CLASSIFIER)


def of_logits(score: Callable[[Floats], Confidence], *, constant_counts: bool = False) -> Score:
    """Return the score of a formula that is given logits, some rows at a time.

    `constant_counts`: whether a constant added to all logits of an image changes it. Probabilities do not tell it.
    """

    def confidence(run: FinishedRun) -> Confidence:
        logits = logits_of(run.test)
        if constant_counts and run.test.given not in ("", "logits"):
            raise Unavailable(NO_CONSTANT)
        return np.asarray(by_rows(score, logits), np.float64)

    return confidence


def logits_of(evidence: Evidence) -> Floats:
    """Return the logits of a run; raise Unavailable where it was imported without."""
    if not evidence.has_logits:
        raise Unavailable(NO_LOGITS)
    return evidence.prediction.logits


def softmax_response(run: FinishedRun) -> Confidence:
    """Return the largest probability as an imported run has it, with its ties; else its log-odds by the logits."""
    probabilities = run.test.prediction.probabilities
    if probabilities is not None:
        return np.asarray(probabilities.max(axis=1), np.float64)
    return of_logits(scores.softmax_response)(run)


def minus_output(name: str) -> Score:
    """Return the score that is minus an output of the method itself, which is larger where there is more doubt."""
    return lambda run: -np.asarray(run.test.prediction.aux[name], np.float64)


def abstention(run: FinishedRun) -> Confidence:
    return scores.abstention(logits_of(run.test), run.test.prediction.aux["abstain"])


def disagreement(run: FinishedRun) -> Confidence:
    return scores.disagreement(logits_of(run.test), run.test.prediction.aux["disagreement"])


def pnorm(run: FinishedRun) -> Confidence:
    """Return the p-norm score with the lowest AURC on validation images; softmax response unless one is better."""
    exponent = best_exponent(run)
    best = scores.softmax_response if exponent is None else partial(scores.max_logit_pnorm, p=exponent)
    return np.asarray(by_rows(best, logits_of(run.test)), np.float64)


def best_exponent(run: FinishedRun) -> int | None:
    """Return the p of the p-norm score with the lowest AURC on validation images; None where SR has none above it."""
    logits = logits_of(run.validation)
    error = logits.argmax(axis=1) != run.validation.labels
    candidates: dict[int | None, Callable[[Floats], Confidence]] = {None: scores.softmax_response}
    candidates |= {p: partial(scores.max_logit_pnorm, p=p) for p in EXPONENTS}
    return min(candidates, key=lambda p: aurc(by_rows(candidates[p], logits), error))


def features(run: FinishedRun) -> tuple[Floats, Floats]:
    """Return the features of the test images and of the training images."""
    test, train = run.test.prediction.features, run.train.prediction.features
    if test is None or train is None:
        raise Unavailable(NO_FEATURES)
    return test, train


def features_of(evidence: Evidence) -> Floats:
    if evidence.prediction.features is None:
        raise Unavailable(NO_FEATURES)
    return evidence.prediction.features


def validation_errors(run: FinishedRun) -> NDArray[np.bool_]:
    """Return which validation images are predicted wrongly; raise Unavailable where all are, or none is."""
    wrong = np.asarray(logits_of(run.validation).argmax(axis=1) != run.validation.labels)
    if wrong.all() or not wrong.any():
        raise Unavailable(ONE_KIND.format("wrong" if len(wrong) and wrong.all() else "right"))
    return wrong


def normalised_margin(run: FinishedRun) -> Confidence:
    weight = run.classifier.weight
    return np.asarray(by_rows(lambda u: scores.normalised_margin(u, weight), logits_of(run.test)), np.float64)


def relative_uncertainty(run: FinishedRun) -> Confidence:
    return fitted.relative_uncertainty(logits_of(run.test), logits_of(run.validation), validation_errors(run))


def delta_nearest_neighbours(run: FinishedRun) -> Confidence:
    test, known = features_of(run.test), features_of(run.validation)
    return fitted.delta_nearest_neighbours(test, known, validation_errors(run))


def delta_mahalanobis(run: FinishedRun) -> Confidence:
    test, known = features_of(run.test), features_of(run.validation)
    return fitted.delta_mahalanobis(test, known, run.validation.labels, validation_errors(run))


def sirc(run: FinishedRun) -> Confidence:
    second, train_second = map(fitted.feature_norm, features(run))
    return fitted.sirc(logits_of(run.test), second, train_second)


def virtual_logit(run: FinishedRun) -> Confidence:
    (test, train), layer = features(run), run.classifier
    return fitted.virtual_logit(logits_of(run.test), test, logits_of(run.train), train, layer.weight, layer.bias)


def best_heated(run: FinishedRun) -> Confidence:
    """Return SR at the temperature with the lowest AURC on validation images."""
    return fitted.heated_response(logits_of(run.test), best_heat(run))


def best_heat(run: FinishedRun) -> float:
    known = logits_of(run.validation)
    return fitted.best_temperature(known, known.argmax(axis=1) != run.validation.labels)


POST_HOC: dict[str, Score] = {
    "SR": softmax_response,
    "margin": of_logits(scores.margin),
    "entropy": of_logits(scores.negative_entropy),
    "max logit": of_logits(scores.max_logit, constant_counts=True),
    "energy": of_logits(scores.energy, constant_counts=True),
    "DOCTOR": of_logits(scores.doctor),
    "pNorm": pnorm,
    "kNN": lambda run: scores.nearest_neighbour(*features(run)),
    "Mahalanobis": lambda run: scores.mahalanobis(*features(run), run.train.labels),
    "cosine logit": of_logits(scores.cosine_logit, constant_counts=True),
    "logit margin": of_logits(scores.logit_margin),
    "normalised margin": normalised_margin,
    "GEN": of_logits(scores.generalised_entropy),
    "Rel-U": relative_uncertainty,
    "delta kNN": delta_nearest_neighbours,
    "delta Mahalanobis": delta_mahalanobis,
    "SIRC": sirc,
    "ViM": virtual_logit,
    "temperature": best_heated,
}
"""Scores that any run can be read with, also long after its training."""
OWN: dict[str, Score] = {
    "abstention": abstention,
    "selection": minus_output("reject"),
    "variance": minus_output("variance"),
    "learnt uncertainty": minus_output("uncertainty"),
    "mutual information": minus_output("mutual information"),
    "disagreement": disagreement,
}
"""Scores made of outputs that only some methods have."""


ADDED: dict[str, Added[Score]] = added.SCORES
"""Scores of the plugins that were loaded: any run can be read with them."""
OwnScores = Callable[[Stored], Mapping[str, Confidence]]
OF_METHODS: dict[str, tuple[OwnScores, str]] = added.SCORES_OF_METHODS
"""By method of a plugin that was loaded: the function of its scores, and the hash of what the file does; the hash is
empty where the method has only scores of the tables above."""


@dataclass(frozen=True)
class Unlabelled:
    """A finished run as scores of users' own files see it: nothing tells them which predictions are right."""

    run: FinishedRun

    @property
    def test(self) -> Evidence:
        test = self.run.test
        return Evidence(test.prediction, np.zeros(0, np.int64), ids=test.ids, given=test.given)

    @property
    def validation(self) -> Evidence:
        return self.run.validation

    @property
    def train(self) -> Evidence:
        return self.run.train

    @property
    def classifier(self) -> Classifier:
        return self.run.classifier


def all_titles() -> dict[str, str]:
    """Return all scores that have a name, with their titles."""
    return scores.TITLES | {name: each.title for name, each in ADDED.items()}


def any_run_scores() -> dict[str, str]:
    """Return the scores that any run can be read with, with their titles."""
    return {name: scores.TITLES[name] for name in POST_HOC} | {name: each.title for name, each in ADDED.items()}


def own_confidence(name: str, run: FinishedRun, method: str) -> Confidence:
    """Return the confidences of a score that is a method's own, as its training would."""
    function, version = OF_METHODS.get(method, (None, ""))
    is_stored = f"{CONFIDENCE}{name}" in run.test.prediction.aux
    if function is None or not version or is_stored:
        return confidence_of(name, run)
    try:
        found = function(run.test.prediction)
    except (Exception, SystemExit) as error:
        raise Unavailable(f"the scores of its own file fail ({brief(error)})") from error
    if name not in found:
        raise Unavailable(f"its method no longer has the score {name}")
    return found[name]


def confidence_of(name: str, run: FinishedRun) -> Confidence:
    """Return the confidences of a score by its name. Raise Unavailable where a run has none."""
    imported = run.test.prediction.aux.get(f"{CONFIDENCE}{name}")
    if imported is not None:
        return np.asarray(imported, np.float64)
    if name in ADDED:
        return added_confidence(ADDED[name], run)
    if score := POST_HOC.get(name) or OWN.get(name):
        try:
            return score(run)
        except KeyError as output:
            raise Unavailable(f"its predictions have no output {output}") from None
    raise Unavailable(f"the score {name} is {NOT_KNOWN}")


def added_confidence(score: Added[Score], run: FinishedRun) -> Confidence:
    """Return the confidences of a score of a user's own file. Raise Unavailable where it fails, with the reason."""
    try:
        found = np.asarray(score.value(Unlabelled(run)), dtype=np.float64)
    except Unavailable:
        raise
    except KeyError as output:
        raise Unavailable(f"its predictions have no output {output}") from None
    except (Exception, SystemExit) as error:
        raise Unavailable(f"the score of {score.file.name} fails ({brief(error)})") from error
    expected = (run.test.num_samples,)
    if found.shape != expected:
        raise Unavailable(f"the score of {score.file.name} has shape {found.shape}, expected {expected}")
    if not np.isfinite(found).all():
        raise Unavailable(f"the score of {score.file.name} is not finite for every image")
    return found
