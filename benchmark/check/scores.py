"""Check a score on made-up finished runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmark.check.findings import Check, Finding, make_checks, require
from benchmark.measure.catalogue import Score
from benchmark.measure.metrics import failure_auroc
from benchmark.measure.prediction import Classifier, Evidence, Floats, Prediction
from benchmark.measure.scores import Confidence, softmax_response

NUM_CLASSES, NUM_FEATURES = 5, 8
SIZES = {"test": 60, "validation": 50, "train": 80}
Rows = NDArray[np.int64]


class MadeUpOutputs(dict[str, Floats]):
    """Further outputs of a method; whichever a score asks for is there."""

    def __init__(self, make: Callable[[str], Floats]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Floats:
        self[name] = self.make(name)
        return self[name]


@dataclass(frozen=True)
class MadeUpRun:
    """A finished run, the same whenever it is made. Nothing in it can be written to."""

    test: Evidence
    validation: Evidence
    train: Evidence
    classifier: Classifier


def made_up_run(rows: Rows | None = None) -> MadeUpRun:
    """Return a made-up run, or one that has only some of the test images."""
    splits = {name: made_up_split(name, size) for name, size in SIZES.items()}
    if rows is not None:
        splits["test"] = part_of(splits["test"], rows)
    weight = np.random.default_rng(0).normal(size=(NUM_CLASSES, NUM_FEATURES)).astype(np.float32)
    return MadeUpRun(**splits, classifier=Classifier(frozen(weight), frozen(np.zeros(NUM_CLASSES, np.float32))))


def made_up_split(name: str, size: int) -> Evidence:
    """Return predictions that are more often right than wrong, as float32, which is how they are stored."""
    random = np.random.default_rng(size)
    labels = np.arange(size) % NUM_CLASSES
    logits = random.normal(size=(size, NUM_CLASSES)) + 2 * np.eye(NUM_CLASSES)[labels]
    features = random.normal(size=(size, NUM_FEATURES)) + 2 * np.eye(NUM_FEATURES)[labels]
    error = logits.argmax(axis=1) != labels

    def output(name: str) -> Floats:
        draws = np.random.default_rng([size, *name.encode()]).gamma(2.0, size=size)
        return frozen((draws + error).astype(np.float32))

    prediction = Prediction(
        frozen(logits.astype(np.float32)), frozen(features.astype(np.float32)), MadeUpOutputs(output)
    )
    return Evidence(prediction, labels, ids=np.arange(size, dtype=np.int32))


def part_of(split: Evidence, rows: Rows) -> Evidence:
    """Return some images of a split."""
    whole = split.prediction
    features = None if whole.features is None else frozen(whole.features[rows])
    outputs = MadeUpOutputs(lambda name: frozen(whole.aux[name][rows]))
    ids = None if split.ids is None else split.ids[rows]
    return Evidence(Prediction(frozen(whole.logits[rows]), features, outputs), split.labels[rows], ids=ids)


def frozen(array: Floats) -> Floats:
    array.flags.writeable = False
    return array


def confidence(score: Score, run: MadeUpRun) -> Confidence:
    return np.asarray(score(run), np.float64)


def one_number_per_image(score: Score) -> None:
    found = confidence(score, made_up_run())
    expected = (SIZES["test"],)
    require(found.shape == expected, f"it has shape {found.shape} for {SIZES['test']} images; expected {expected}")
    require(bool(np.isfinite(found).all()), "it is not finite")
    require(len(np.unique(found)) > 1, "it is the same for all images")


def repeatable(score: Score) -> None:
    first, again = (confidence(score, made_up_run()) for _ in range(2))
    require(bool(np.array_equal(first, again)), "it differs from call to call; fix the seed of what it draws")


def without_test_labels(score: Score) -> None:
    run = made_up_run()
    other = replace(run, test=replace(run.test, labels=(run.test.labels + 1) % NUM_CLASSES))
    same = np.array_equal(confidence(score, run), confidence(score, other))
    require(bool(same), "it reads the labels of the test images, which are not known when it is used")


def each_image_for_itself(score: Score) -> None:
    """Require the same confidence of an image among others, and in another place."""
    rows = np.random.default_rng(1).permutation(SIZES["test"])[: SIZES["test"] // 2]
    whole, part = confidence(score, made_up_run())[rows], confidence(score, made_up_run(rows))
    require(
        bool(np.allclose(part, whole, rtol=1e-4, atol=1e-6)),
        "the confidence of an image depends on the other test images; fit on run.validation or run.train",
    )


def direction(score: Score) -> str:
    """Return how often it ranks a right prediction above a wrong one: a person can tell by it, a program cannot."""
    test = made_up_run().test
    error = np.asarray(test.prediction.logits.argmax(axis=1) != test.labels, np.float64)
    own = failure_auroc(confidence(score, made_up_run()), error)
    plain = failure_auroc(softmax_response(test.prediction.logits), error)
    return f"right above wrong in {own:.0%} of made-up pairs (SR: {plain:.0%}); well below 50%, its sign may be wrong"


CHECKS: dict[str, Check[Score]] = {
    "one finite number per image": one_number_per_image,
    "the same bits when repeated": repeatable,
    "does without the labels of the test images": without_test_labels,
    "judges each image for itself": each_image_for_itself,
    "larger should mean more confident": direction,
}


def score_findings(score: Score) -> Iterator[Finding]:
    """Make every check of a score."""
    return make_checks(CHECKS, score)
