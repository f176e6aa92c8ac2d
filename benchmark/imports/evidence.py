"""Turn what a run brings into what the suite stores and measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.imports.fields import KINDS, TEST, TRAIN, VAL, Arrays, named
from benchmark.measure.catalogue import NO_CLASSIFIER, OWN, POST_HOC, Unavailable, confidence_of
from benchmark.measure.prediction import CONFIDENCE, Classifier, Evidence, Prediction
from benchmark.measure.scores import Confidence
from benchmark.store.prediction_file import LOG_OF_ZERO, SMALLEST, logarithms

SR = "SR"
UNNAMED = "confidence"
"""What a confidence without a name of its own is called."""
OUTPUTS = {name: name for name in OWN} | {"abstention": "abstain", "selection": "reject"}
"""Scores that are made of an output of the method, and the name of that."""


def evidence_of(fields: Arrays, *, normalise: bool = False, order: NDArray[np.int64] | None = None) -> Evidence:
    """Return the prediction in the fields of one part, which were checked; `order` sorts its samples."""
    if order is not None:
        fields = {name: array[order] for name, array in fields.items()}
    given = next((kind for kind in KINDS if kind in fields), "predicted")
    n = len(next(iter(fields.values())))
    predicted, loss = fields.get("predicted"), fields.get("loss")
    return Evidence(
        prediction_of(fields, given, n, normalise),
        np.asarray(fields["labels"], np.int64) if "labels" in fields else np.zeros(0, np.int64),
        None if "posterior" not in fields else np.asarray(fields["posterior"], np.float64),
        None if "ids" not in fields else np.asarray(fields["ids"]),
        given=given,
        predicted=None if predicted is None else np.asarray(predicted, np.int64),
        loss=None if loss is None else np.asarray(loss, np.float64),
        groups={name: np.asarray(fields[field]) for name, field in named(fields, "group").items()},
    )


def prediction_of(fields: Arrays, given: str, n: int, normalise: bool) -> Prediction[NDArray[np.floating]]:
    confidences = {name: fields[field] for name, field in named(fields, "confidence").items()}
    if "confidence" in fields:
        confidences[UNNAMED] = fields["confidence"]
    aux: dict[str, NDArray[np.floating]] = {}
    aux |= {f"{CONFIDENCE}{name}": np.asarray(array, np.float64) for name, array in confidences.items()}
    aux |= {name: floats(fields[field]) for name, field in named(fields, "output").items()}
    features = floats(fields["features"]) if "features" in fields else None
    if given == "probabilities":
        p = floats(fields["probabilities"])
        p = (p / p.sum(axis=1, keepdims=True, dtype=np.float64)).astype(p.dtype) if normalise else p
        return Prediction(logarithms(p), features, aux, p)
    if given == "log_probabilities":
        return Prediction(np.nan_to_num(floats(fields[given]), neginf=LOG_OF_ZERO), features, aux)
    logits = floats(fields["logits"]) if given == "logits" else np.zeros((n, 0), np.float32)
    return Prediction(logits, features, aux)


def floats(array: NDArray[Any]) -> NDArray[np.floating]:
    """Return numbers in their own precision: float64 or float32, in which float16 is exact.

    What is mapped into memory at an odd place is copied: most operations would take many times as long there.
    """
    kind = np.float32 if array.dtype in (np.float16, np.float32) else np.float64
    return np.require(array, kind, ["C_CONTIGUOUS", "ALIGNED"])


def score_names(evidence: Evidence, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the confidences that become columns, the method's own first: those named, or all that a run brings."""
    if wanted:
        return tuple(wanted)
    brought = [name.removeprefix(CONFIDENCE) for name in evidence.prediction.aux if name.startswith(CONFIDENCE)]
    names = [SR] if evidence.has_logits else []
    names += [name for name in brought if name != UNNAMED]
    names += [name for name, output in OUTPUTS.items() if output in evidence.prediction.aux]
    return tuple(dict.fromkeys(([UNNAMED] if UNNAMED in brought else []) + names))


@dataclass(frozen=True)
class ImportedParts:
    """The parts of a run, as scores read them."""

    parts: Mapping[str, Evidence]

    @property
    def test(self) -> Evidence:
        return self.parts[TEST]

    @property
    def validation(self) -> Evidence:
        return self.part(VAL)

    @property
    def train(self) -> Evidence:
        return self.part(TRAIN)

    @property
    def classifier(self) -> Classifier:
        raise Unavailable(NO_CLASSIFIER)

    def part(self, name: str) -> Evidence:
        if name not in self.parts:
            raise Unavailable(f"it needs {name}.…, which the run does not bring")
        return self.parts[name]


def confidences(parts: Mapping[str, Evidence], names: Sequence[str], where: str) -> dict[str, Confidence]:
    """Return the confidences by name; refuse one that cannot be had."""
    found = {}
    for name in names:
        try:
            found[name] = confidence_of(name, ImportedParts(parts))
        except Unavailable as why:
            raise UserError(f"{where}: no score '{name}': {why}") from None
    return found


def check_score_names(evidence: Evidence, where: str) -> None:
    """Refuse a confidence with the name of a score that the suite computes from what the run brings."""
    for name in POST_HOC if evidence.has_logits else ():
        if f"{CONFIDENCE}{name}" in evidence.prediction.aux:
            computed = f"the suite computes {name} from the {evidence.given}"
            raise UserError(f"{where}: confidence.{name}: {computed}; leave it out, or give it another name")


def zero_labels(evidence: Evidence) -> int:
    """Return how many samples have a true class whose probability is 0, or so small that it counts as that."""
    own = np.arange(len(evidence.labels)), evidence.labels
    p = evidence.prediction.probabilities
    if p is not None:
        return int((p[own] < SMALLEST).sum())
    is_logarithm = evidence.given == "log_probabilities"
    return int(np.isclose(evidence.prediction.logits[own], LOG_OF_ZERO).sum()) if is_logarithm else 0
