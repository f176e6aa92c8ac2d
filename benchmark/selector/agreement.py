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
"""What confidences and logits may differ by, as a share of the largest: they are computed in single precision."""


@dataclass(frozen=True)
class Answers:
    """What one way says of all images."""

    name: str
    classes: NDArray[np.int64]
    confidence: NDArray[np.float64]
    logits: NDArray[np.float64] | None = None
    """None where it does not tell."""


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


def compare(ours: Answers, theirs: Answers, threshold: float) -> Agreement:
    """Return how far two ways agree. Raise UserError where they do not; `theirs` has logits."""
    if theirs.logits is None:
        raise TypeError("the way that is compared with must tell its logits")
    share, room = difference(ours.confidence, theirs.confidence), SAME * largest(theirs.confidence)
    apart = [share]
    if ours.logits is not None:
        apart.append(difference(ours.logits, theirs.logits))
    kept, theirs_kept = (each.confidence >= threshold for each in (ours, theirs))
    moved = kept != theirs_kept
    far = moved & (np.abs(theirs.confidence - threshold) > room)
    two = np.sort(theirs.logits, axis=1)[:, -2:]
    renamed = ours.classes != theirs.classes
    clear = renamed & (two[:, 1] - two[:, 0] > 2 * SAME * largest(theirs.logits))
    if not max(apart) <= SAME or far.any() or clear.any():
        raise UserError(
            f"{ours.name} does not agree with {theirs.name}, so nothing is written: of "
            f"{counted(len(kept), 'image')}, confidences differ by {max(apart):.1e} of the largest (at most "
            f"{SAME:g}), {far.sum()} decisions and {clear.sum()} classes"
        )
    return Agreement(max(apart), int(moved.sum()), int(renamed.sum()), len(kept))


def largest(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max(initial=np.finfo(np.float64).tiny))


def difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    """Return the largest difference as a share of the largest value; not a number where one of them is none."""
    return float(np.abs(ours - theirs).max(initial=0.0)) / largest(theirs)


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
            reading = model.read(images)
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
