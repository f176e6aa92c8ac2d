"""Compute further scores of finished runs. What must be fitted is fitted on validation or training images."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmark.base.files import Damaged
from benchmark.measure import scores
from benchmark.measure.evaluate import measure_scores
from benchmark.measure.metrics import aurc
from benchmark.measure.prediction import Evidence, Floats
from benchmark.measure.scores import Confidence
from benchmark.store.store import PREDICTION, PREDICTION_TRAIN, PREDICTION_VAL, Store, at_epoch

EXPONENTS = range(10)


class Unavailable(Exception):
    """A run has no value of a score; the text says why."""


@dataclass(frozen=True)
class Finished:
    """The stored predictions of a finished run, each read when it is first used."""

    folder: Path
    store: Store
    epoch: int | None = None
    """Read what was stored after so many epochs; None is the end of training."""

    @cached_property
    def test(self) -> Evidence:
        return self.read(PREDICTION, "its predictions were not kept")

    @cached_property
    def validation(self) -> Evidence:
        return self.read(PREDICTION_VAL, "it needs validation images, and the task has none (data.val = 0)")

    @cached_property
    def train(self) -> Evidence:
        return self.read(PREDICTION_TRAIN, NO_FEATURES)

    def read(self, name: str, reason: str) -> Evidence:
        try:
            return self.store.read_prediction(self.folder, name if self.epoch is None else at_epoch(name, self.epoch))
        except OSError:
            raise Unavailable(reason) from None
        except Damaged:
            raise Unavailable("its predictions are damaged; the command that made them makes them again") from None

    def features(self) -> tuple[Floats, Floats]:
        """Return the features of the test images and of the training images."""
        test, train = self.test.prediction.features, self.train.prediction.features
        if test is None or train is None:
            raise Unavailable(NO_FEATURES)
        return test, train


NO_FEATURES = "it needs features, which --keep-features stores; means of several passes or networks have none"


def of_logits(score: Callable[[Floats], Confidence]) -> Callable[[Finished], Confidence]:
    return lambda run: score(run.test.prediction.logits)


def pnorm(run: Finished) -> Confidence:
    """Return the p-norm score with the lowest AURC on validation images; softmax response unless one is better."""
    logits = run.validation.prediction.logits
    error = logits.argmax(axis=1) != run.validation.labels
    candidates: list[Callable[[Floats], Confidence]] = [scores.softmax_response]
    candidates += [lambda u, p=p: scores.max_logit_pnorm(u, p) for p in EXPONENTS]  # type: ignore[misc]
    best = min(candidates, key=lambda score: aurc(score(logits), error))
    return best(run.test.prediction.logits)


POST_HOC: dict[str, Callable[[Finished], Confidence]] = {
    "SR": of_logits(scores.softmax_response),
    "margin": of_logits(scores.margin),
    "entropy": of_logits(scores.negative_entropy),
    "max logit": of_logits(scores.max_logit),
    "energy": of_logits(scores.energy),
    "DOCTOR": of_logits(scores.doctor),
    "pNorm": pnorm,
    "kNN": lambda run: scores.nearest_neighbour(*run.features()),
    "Mahalanobis": lambda run: scores.mahalanobis(*run.features(), run.train.labels),
}


def with_scores(
    record: dict[str, Any], folder: Path, store: Store, wanted: Iterable[str], epoch: int | None = None
) -> dict[str, Any]:
    """Return the record with further scores measured, and why others cannot be."""
    run = Finished(folder, store, epoch)
    measured: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name in wanted:
        if name not in record["scores"]:
            try:
                measured |= measure_scores(run.test, {name: POST_HOC[name](run)})
            except (Unavailable, ValueError) as reason:
                reasons[name] = str(reason)
    return {**record, "scores": {**record["scores"], **measured}, "unavailable": reasons}
