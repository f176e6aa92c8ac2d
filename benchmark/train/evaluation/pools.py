"""Put the images of an evaluation set together, as its tables judge them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchmark.data.cache import Folders
from benchmark.data.evaluation.annotations import annotations
from benchmark.data.evaluation.parts import Part
from benchmark.jobs.job import Evaluated, Job
from benchmark.measure.prediction import Evidence, Stored
from benchmark.measure.scores import Confidence
from benchmark.measure.sets.formulas import StoredPart, joined, thresholds_for, with_new, without_logits
from benchmark.store.store import PREDICTION_VAL, Store

NO_VALIDATION = "the run has no validation images (data.val = 0), and a threshold must be set beforehand"


@dataclass(frozen=True)
class FinishedRun:
    """What a finished run predicted of the test images, and the thresholds that its validation images set."""

    run: Job
    store: Store
    scores: Callable[[Stored], Mapping[str, Confidence]]

    @cached_property
    def test(self) -> Evidence:
        return self.store.read_prediction(self.run.folder, self.run.measured)

    @cached_property
    def clean(self) -> Evidence:
        """Return classes and confidences of the test images."""
        return self.judged(self.test)

    def judged(self, evidence: Evidence, new_class: int | None = None) -> Evidence:
        return without_logits(evidence, self.scores(evidence.prediction), new_class)

    @property
    def num_classes(self) -> int:
        return int(self.test.prediction.logits.shape[1])

    @cached_property
    def thresholds(self) -> dict[str, dict[str, float]]:
        """Return by score the thresholds of the task's coverages; none where there are no validation images."""
        if self.no_thresholds:
            return {}
        val = self.store.read_prediction(self.run.folder, PREDICTION_VAL)
        found = self.scores(val.prediction).items()
        return {score: thresholds_for(confidence, self.run.task.coverages) for score, confidence in found}

    @property
    def no_thresholds(self) -> str:
        """Return why there are no thresholds; empty where there are some."""
        return "" if self.run.task.data.has_validation else NO_VALIDATION


def annotated(finished: FinishedRun, evaluated: Evaluated, folders: Folders) -> Evidence:
    """Return the predictions of the test images with what people say of them, or with groups."""
    clean = finished.clean
    if clean.ids is None:
        raise ValueError("its predictions are of a version that did not store which images they are of")
    found = annotations(evaluated.config, finished.run.task, folders, clean.ids, finished.num_classes)
    if found.sha256 != evaluated.sha256:
        raise ValueError("the file of the evaluation set has changed since this job was planned; run it again")
    return replace(clean, posterior=found.posterior, groups=found.groups)


def pool_of(
    finished: FinishedRun, evaluated: Evaluated, parts: Sequence[Part], predicted: Iterable[Evidence]
) -> tuple[Evidence, tuple[StoredPart, ...]]:
    """Return the images that are judged together, and the parts that they come from."""
    if evaluated.config.kind != "new":
        stored = tuple(StoredPart(part.name, part.kind, part.severity) for part in parts)
        return joined([finished.judged(each) for each in predicted]), stored
    new = joined([finished.judged(each, finished.num_classes) for each in predicted])
    return with_new(finished.clean, new, evaluated.config.share)
