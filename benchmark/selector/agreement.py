"""Ask the suite, a model and its graph the same of all images, and compare what they say."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.measure.prediction import Stored
from benchmark.measure.scores import Confidence
from benchmark.selector.graph import Graph
from benchmark.selector.model import SelectiveModel

SAME = 1e-6
"""What confidences and logits may differ by, as a share of the largest."""
ROUNDINGS = 8
"""Or so many times what single precision itself rounds away: confidences can be small differences of large logits."""


Floats = NDArray[np.float64]


class Disagreement(UserError):
    """Two ways do not compute the same."""


@dataclass(frozen=True)
class Answers:
    """What one way says of all images."""

    name: str
    classes: NDArray[np.int64]
    confidence: Floats
    logits: Floats | None = None
    """None where it does not tell."""

    @property
    def table(self) -> Floats:
        """Return the logits, which must be there."""
        if self.logits is None:
            raise TypeError(f"{self.name} does not tell its logits")
        return self.logits


@dataclass(frozen=True)
class Agreement:
    """How far two ways agree."""

    difference: float
    """The largest of confidences and logits, as a share of the largest value."""
    decisions: int
    """Images that one keeps and the other does not, as close to the threshold as the ways may differ."""
    classes: int
    """Images of different classes, the logits of both as close as the ways may differ."""
    num_images: int

    def __str__(self) -> str:
        """Return it as a part of a sentence."""
        agree = f"{counted(self.num_images, 'image')} agree to {self.difference:.1e}"
        edges = [
            counted(number, *words)
            for number, words in ((self.decisions, ("decision",)), (self.classes, ("class", "classes")))
            if number
        ]
        return f"{agree}, but for {' and '.join(edges)} at the very edge" if edges else agree


@dataclass(frozen=True)
class Room:
    """By how much two ways may differ."""

    confidence: float
    logits: float

    @classmethod
    def beside(cls, answers: Answers) -> "Room":
        """Return a share of the largest values."""
        return cls(SAME * largest(answers.confidence), SAME * largest(answers.table))

    @classmethod
    def rounded(cls, single: Answers, double: Answers) -> "Room":
        """Return a multiple of what single precision rounds away of these images."""
        apart = farthest(single.confidence, double.confidence), farthest(single.table, double.table)
        return cls(*(ROUNDINGS * each for each in apart))


def compare(ours: Answers, theirs: Answers, threshold: float, room: Room) -> Agreement:
    """Return how far two ways agree. Raise Disagreement where they do not; `theirs` has logits."""
    gap = farthest(ours.confidence, theirs.confidence)
    apart = 0.0 if ours.logits is None else farthest(ours.logits, theirs.table)
    moved = (ours.confidence >= threshold) != (theirs.confidence >= threshold)
    far = moved & (np.abs(theirs.confidence - threshold) > room.confidence)
    second, first = np.sort(theirs.table, axis=1)[:, -2:].T
    renamed = ours.classes != theirs.classes
    clear = renamed & (first - second > 2 * room.logits)
    if not (gap <= room.confidence and apart <= room.logits) or far.any() or clear.any():
        raise Disagreement(
            f"{ours.name} does not agree with {theirs.name}, so nothing is written: of "
            f"{counted(len(moved), 'image')}, confidences differ by up to {gap:.1e} (allowed {room.confidence:.1e}), "
            f"logits by {apart:.1e} (allowed {room.logits:.1e}), {far.sum()} decisions and {clear.sum()} classes"
        )
    share = max(gap / largest(theirs.confidence), apart / largest(theirs.table))
    return Agreement(share, int(moved.sum()), int(renamed.sum()), len(moved))


def largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=np.finfo(np.float64).tiny))


def farthest(ours: Floats, theirs: Floats) -> float:
    """Return the largest difference; not a number where one of them is none."""
    return float(np.abs(ours - theirs).max(initial=0.0))


def joined(name: str, parts: Sequence[Answers]) -> Answers:
    """Return the answers of several batches as one."""
    tables = [part.logits for part in parts if part.logits is not None]
    return Answers(
        name,
        np.concatenate([part.classes for part in parts]),
        np.concatenate([part.confidence for part in parts]),
        np.concatenate(tables) if tables else None,
    )


def of_suite(prediction: Stored, confidence: Confidence) -> Answers:
    """Return what the suite has stored."""
    return Answers(
        "the suite's own prediction", prediction.logits.argmax(axis=1), confidence, prediction.logits.astype("float64")
    )


def of_model(model: SelectiveModel, batches: Iterable[Tensor]) -> Answers:
    """Return what a model says of images on its device."""
    parts = []
    with torch.no_grad():
        for images in batches:
            reading = model.read(images.to(model.mean.device))
            found = (reading.logits.argmax(1), model.score(reading), reading.logits)
            parts.append(Answers("", *(each.cpu().numpy() for each in found)))
    return joined("the exported network", parts)


def of_graph(graph: Graph, batches: Iterable[Tensor]) -> Answers:
    """Return what a graph says of images."""
    parts = []
    for images in batches:
        found = graph.decide(images.cpu())
        parts.append(Answers("", found.classes.numpy(), found.confidence.numpy()))
    return joined("the ONNX graph", parts)
