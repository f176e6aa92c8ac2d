"""Choose the images that certify a threshold: nothing else may have used them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmark.base.units import counted
from benchmark.measure.catalogue import FinishedRun, Unavailable, confidence_of, own_confidence
from benchmark.measure.evaluate import Ranking
from benchmark.measure.prediction import Classifier, Evidence
from benchmark.measure.scores import Confidence
from benchmark.measure.sets.formulas import Judged
from benchmark.store.record import Record

FROM_TEST = "--from-test 50% takes a share of the test images instead"
NO_HELD_OUT = f"it has no held-out images (trained: data.val = 0; imported: no val); {FROM_TEST}"


@dataclass(frozen=True)
class View:
    """A finished run as a score sees it that judges some images. It notes whether the score looks at validation."""

    run: FinishedRun
    test: Evidence
    fitted_on: Evidence | None
    """What a score's parameters are fitted on; None: the run has no validation images for that."""
    used: list[str] = field(default_factory=list)

    @property
    def validation(self) -> Evidence:
        self.used.append("validation")
        return self.run.validation if self.fitted_on is None else self.fitted_on

    @property
    def train(self) -> Evidence:
        return self.run.train

    @property
    def classifier(self) -> Classifier:
        return self.run.classifier


@dataclass(frozen=True)
class HeldOut:
    """Images that certify a threshold, and those that show what became of it, with a confidence and a loss each."""

    certifying: Judged
    tested: Judged
    certifying_images: Evidence
    tested_images: Evidence
    run: View
    """Scores the tested images. Its validation images are what a score's parameters are fitted on."""
    origin: str
    """Where the certifying images come from, in words."""


@dataclass(frozen=True)
class Source:
    """Which images certify, and what is known of their use."""

    from_test: float | None = None
    """The share of the test images that certify; None: the validation images do."""
    why_used: Callable[[Record], str] = field(default=lambda record: "")
    """Why the validation images of a run cannot certify, as its training used them; empty where they can."""

    def of(self, record: Record, run: FinishedRun, score: str) -> HeldOut:
        """Return the held-out images of a run. Raise Unavailable where there are none."""
        if self.from_test is not None:
            return self.taken_from_test(record, run, score, self.from_test)
        if used := self.why_used(record):
            raise Unavailable(f"{used}, so they certify nothing; {FROM_TEST}")
        try:
            validation = run.validation
        except Unavailable:
            raise Unavailable(NO_HELD_OUT) from None
        images = counted(validation.num_samples, "validation image")
        found = judged(record, run, score, validation, run.test, validation, f"all {images}")
        if not found.run.used:
            return found
        fitting, certifying = divided(validation, 0.5, record.seed)
        origin = f"half of {images}: the score's parameters are fitted on the other half"
        return judged(record, run, score, certifying, run.test, fitting, origin)

    def taken_from_test(self, record: Record, run: FinishedRun, score: str, share: float) -> HeldOut:
        certifying, tested = divided(run.test, share, record.seed)
        try:
            fitting = run.validation
        except Unavailable:
            fitting = None
        images = counted(run.test.num_samples, "test image")
        origin = f"{100 * share:.4g} % of {images}, drawn by the seed; the rest are tested"
        return judged(record, run, score, certifying, tested, fitting, origin)


def judged(
    record: Record,
    run: FinishedRun,
    score: str,
    certifying: Evidence,
    tested: Evidence,
    fitting: Evidence | None,
    origin: str,
) -> HeldOut:
    """Score both kinds of images alike."""
    first, second = View(run, certifying, fitting), View(run, tested, fitting)
    both = judged_by(score, first, record), judged_by(score, second, record)
    return HeldOut(*both, certifying, tested, second, origin)


def judged_by(score: str, view: View, record: Record) -> Judged:
    confidence = confidence_by(score, view, record)
    return Judged(confidence, Ranking(score, confidence, view.test).error)


def confidence_by(score: str, view: View, record: Record) -> Confidence:
    """Return the confidences of a score: one of the method's own, or one that any run can be read with."""
    if score in record.measures.scores:
        return own_confidence(score, view, record.method)
    return confidence_of(score, view)


def divided(images: Evidence, share: float, seed: int) -> tuple[Evidence, Evidence]:
    """Return a random share of some images, and the rest. The draw depends on the seed and their number alone."""
    count = images.num_samples
    key = hashlib.sha256(f"{seed}/certify/{count}".encode()).digest()
    order: NDArray[np.int64] = np.random.Generator(np.random.PCG64(int.from_bytes(key[:8], "little"))).permutation(
        count
    )
    taken = round(share * count)
    if not 0 < taken < count:
        raise Unavailable(
            f"{100 * share:.4g} % of {counted(count, 'image')} leaves nothing to certify with, or to test"
        )
    first, second = np.sort(order[:taken]), np.sort(order[taken:])
    return images.of(first), images.of(second)
