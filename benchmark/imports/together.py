"""Check the runs of one command against each other, and against those that are there: are the samples the same?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.units import counted
from benchmark.imports.fields import ImportedRun
from benchmark.measure.evaluate import predicted_classes
from benchmark.measure.prediction import Evidence
from benchmark.measure.sets.parts import PART, SetMeasures

LABELS_SHOWN = 3
ANOTHER_TASK = "name another task with --task NAME"


@dataclass(frozen=True)
class SetContent:
    """What an evaluation set is, and the names of its parts by number."""

    kind: str
    parts: tuple[str, ...]

    @staticmethod
    def of(measured: SetMeasures) -> "SetContent":
        return SetContent(measured.kind, measured.stored)


@dataclass(frozen=True)
class Samples:
    """The samples of a run: their labels and ids, and how many classes there are."""

    where: str
    count: int
    labels: NDArray[np.int64]
    ids: NDArray[Any] | None
    num_classes: int
    """0 where it is not known."""
    of_set: SetContent | None = None
    """None for test samples, and for sets of which the parts are not known."""
    part: NDArray[np.int16] | None = None
    """The number of the part of each, where there are parts."""

    @property
    def part_names(self) -> NDArray[np.str_] | None:
        return None if self.of_set is None or self.part is None else np.array(self.of_set.parts)[self.part]


def samples_of(evidence: Evidence, where: str, of_set: SetContent | None = None) -> Samples:
    classes = evidence.prediction.logits.shape[1]
    part = evidence.groups.get(PART) if of_set and of_set.parts else None
    return Samples(where, evidence.num_samples, evidence.labels, evidence.ids, classes, of_set, part)


def order_like(samples: Samples, first: Samples) -> NDArray[np.int64] | None:
    """Return in which order the samples are those of the first run; None where they stand so. Refuse other samples.

    They are matched by ids where both have them, else row by row.
    """
    both = f"{samples.where} and {first.where}"
    check_kinds(samples.of_set, first.of_set, both)
    if samples.count != first.count:
        got = f"got {samples.count:,} and {first.count:,}"
        raise UserError(f"{both}: expected the same samples, {got}; {ANOTHER_TASK}")
    if samples.num_classes and first.num_classes and samples.num_classes != first.num_classes:
        got = f"got {samples.num_classes:,} and {first.num_classes:,}"
        raise UserError(f"{both}: expected as many classes in both, {got}; {ANOTHER_TASK}")
    if len(samples.labels) != len(first.labels):
        lacking = samples.where if len(first.labels) else first.where
        raise UserError(f"{both}: {lacking} has a loss and no labels, the other has labels; {ANOTHER_TASK}")
    order = None if samples.ids is None or first.ids is None else matched(samples.ids, first.ids, both)
    labels = samples.labels[order] if order is not None and len(samples.labels) else samples.labels
    check_parts_of_set(samples, first, order, both)
    if (labels != first.labels).any():
        by_ids = samples.ids is not None and first.ids is not None
        raise UserError(f"{both}: {differing_labels(labels, first, by_ids=by_ids)}")
    return order


def check_kinds(own: SetContent | None, known: SetContent | None, both: str) -> None:
    if own and known and own.kind != known.kind:
        raise UserError(f"{both}: expected sets of one kind, got {own.kind} and {known.kind}; give one another name")


def check_parts_of_set(samples: Samples, first: Samples, order: NDArray[np.int64] | None, both: str) -> None:
    """Refuse samples of a set that belong to other parts."""
    ours, theirs = samples.part_names, first.part_names
    if ours is None or theirs is None:
        return
    ours = ours if order is None else ours[order]
    if (wrong := np.flatnonzero(ours != theirs)).size:
        got = f"got {ours[wrong[0]]} and {theirs[wrong[0]]} in row {wrong[0]}"
        raise UserError(f"{both}: expected the same parts in the same rows, {got}; sort them, or bring `ids` in both")


def matched(ids: NDArray[Any], first: NDArray[Any], both: str) -> NDArray[np.int64] | None:
    """Return the positions at which the ids of the first run stand among these; None where they stand in its order."""
    if ids.dtype.kind in "iu" and first.dtype.kind in "iu" and np.array_equal(ids, first):
        return None
    ours, theirs = ids.astype(str), first.astype(str)
    if np.array_equal(ours, theirs):
        return None
    order, place = np.argsort(ours), np.argsort(np.argsort(theirs))
    if not np.array_equal(np.sort(ours), np.sort(theirs)):
        lost = np.setdiff1d(theirs, ours)
        lacks = f"the first lacks {counted(len(lost), 'id')}, e.g. {shown(str(lost[0]))}"
        raise UserError(f"{both}: expected the same ids in both; {lacks}")
    return np.asarray(order[place])


def differing_labels(labels: NDArray[np.int64], first: Samples, *, by_ids: bool) -> str:
    """Describe how many labels differ, and guess why."""
    wrong = np.flatnonzero(labels != first.labels)
    row, number = int(wrong[0]), counted(len(wrong), "label differs", "labels differ")
    text = f"{number} of {len(labels):,}, first in row {row}: {labels[row]} and {first.labels[row]}"
    if np.array_equal(np.sort(labels), np.sort(first.labels)) and not by_ids:
        return f"{text}; the samples seem to stand in another order: bring `ids` in both, or sort them"
    return f"{text}; expected the same samples: {ANOTHER_TASK}"


def check_seeds(runs: Sequence[ImportedRun]) -> None:
    """Refuse two runs of one method with one seed."""
    files: dict[tuple[str, int], str] = {}
    for run in runs:
        key = (run.method, run.seed)
        if key in files:
            both, example = f"{run.file} and {files[key]}", f"{run.method}-{run.seed + 1}.npz"
            raise UserError(
                f"{both}: both are {run.method} with seed {run.seed}; name them METHOD-SEED, e.g. {example}"
            )
        files[key] = run.file


def permuted_classes(evidence: Evidence, where: str) -> Iterator[str]:
    """Yield a warning where predictions are no better than chance, and good with other names of the classes."""
    labels = evidence.labels
    if evidence.loss is not None or not len(labels):
        return
    predicted = predicted_classes(evidence)
    num_classes = max(evidence.prediction.logits.shape[1], int(max(labels.max(), predicted.max())) + 1)
    accuracy = float((predicted == labels).mean())
    if accuracy > 1.5 / num_classes or len(labels) < 5 * num_classes:
        return
    confusion = np.bincount(predicted * num_classes + labels, minlength=num_classes**2).reshape(
        num_classes, num_classes
    )
    rows, columns = linear_sum_assignment(-confusion)
    fitted = float(confusion[rows, columns].sum() / len(labels))
    if fitted >= max(0.5, 3 * accuracy):
        moved = [f"{row} is {column}" for row, column in zip(rows, columns, strict=True) if row != column]
        yield (
            f"{where}: accuracy {accuracy:.1%}, but {fitted:.1%} if predicted class {', '.join(moved[:LABELS_SHOWN])}"
            f"{' and so on' if len(moved) > LABELS_SHOWN else ''}: are the classes in the order of the labels?"
        )
