"""Put the samples of an evaluation set together as its tables judge them, and measure its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.imports.checks import NEW
from benchmark.imports.evidence import ImportedParts, confidences, score_names
from benchmark.imports.fields import TEST, VAL
from benchmark.imports.keep import Parts
from benchmark.imports.sets import HUMANS, OF_PARTS, BroughtSet
from benchmark.imports.together import SetContent
from benchmark.measure.catalogue import Unavailable, confidence_of
from benchmark.measure.evaluate import predicted_classes
from benchmark.measure.prediction import CONFIDENCE, Evidence
from benchmark.measure.scores import Confidence
from benchmark.measure.sets.formulas import SHIFTED, StoredPart, measure_set, thresholds_for, with_new, without_logits
from benchmark.measure.sets.parts import PART, SetMeasures

NO_VALIDATION = "the run brings no validation samples (val.…), and a threshold must be set beforehand"
OTHER_FORM = "the run brings {} for its validation samples and {} for its test samples, whose confidences differ"


@dataclass(frozen=True)
class RunOnSet:
    """An evaluation set of a run, with the run itself."""

    brought: BroughtSet
    of_set: Parts
    """What is judged, with validation and training samples."""
    of_run: Parts
    """The test samples, with the same."""
    wanted: Sequence[str]
    """The scores to show; empty for all that the run brings."""
    where: str

    @cached_property
    def scores(self) -> tuple[str, ...]:
        """Return the confidences that become columns; those of a pool with new classes are had by both."""
        own = score_names(self.of_set[TEST], self.wanted)
        if self.brought.kind != NEW:
            return own
        of_test = score_names(self.of_run[TEST], self.wanted)
        if found := tuple(name for name in own if name in of_test):
            return found
        raise UserError(f"{self.where}: expected a confidence that the test samples have: {', '.join(of_test)}")

    @cached_property
    def clean(self) -> Evidence:
        """Return classes and confidences of the test samples."""
        return without_logits(self.of_run[TEST], available(self.of_run, self.scores))

    @cached_property
    def pool(self) -> Evidence:
        """Return what is stored and measured: all samples together, with the number of the part of each."""
        return self.numbered[0]

    @cached_property
    def numbered(self) -> tuple[Evidence, tuple[StoredPart, ...]]:
        evidence, known = self.of_set[TEST], confidences(self.of_set, self.scores, self.where)
        if self.brought.is_shift:
            return numbered_parts(with_confidences(evidence, known))
        if self.brought.kind == NEW:
            return with_new(self.clean, without_logits(evidence, known, self.new_class), self.brought.share)
        said = replace(evidence, groups={}) if self.brought.kind == HUMANS else replace(evidence, posterior=None)
        return replace(without_logits(said, known), groups=said.groups), ()

    @property
    def parts(self) -> Parts:
        """Return what is stored: of shifted samples with what scores are fitted on."""
        return {**self.of_set, TEST: self.pool} if self.brought.is_shift else {TEST: self.pool}

    @property
    def content(self) -> SetContent:
        return SetContent(self.brought.kind, tuple(part.name for part in self.numbered[1]))

    @property
    def new_class(self) -> int:
        """Return the label of new images: the number behind the last class."""
        test, new = self.of_run[TEST], predicted_classes(self.of_set[TEST])
        count = test.prediction.logits.shape[1] or int(test.labels.max()) + 1
        if new.max() >= count:
            raise UserError(
                f"{self.where}: predicted: expected classes from 0 to {count - 1}, as the test samples have, got "
                f"{new.max()}"
            )
        return count

    def measures(self, coverages: Sequence[float]) -> SetMeasures:
        """Return the measures of its parts."""
        thresholds, reason = thresholds_of(self.of_run, self.scores, coverages)
        pool, stored = self.numbered
        return measure_set(self.brought.kind, pool, self.clean, stored, thresholds, coverages, reason)


def available(parts: Parts, names: Sequence[str]) -> dict[str, Confidence]:
    """Return those of some confidences that can be had."""
    found = {}
    for name in names:
        try:
            found[name] = confidence_of(name, ImportedParts(parts))
        except Unavailable:
            continue
    return found


def with_confidences(evidence: Evidence, known: Mapping[str, Confidence]) -> Evidence:
    """Return a prediction with confidences beside it, from which the measures of its parts can be made again."""
    aux = evidence.prediction.aux | {f"{CONFIDENCE}{name}": each for name, each in known.items()}
    return replace(evidence, prediction=replace(evidence.prediction, aux=aux))


def numbered_parts(evidence: Evidence) -> tuple[Evidence, tuple[StoredPart, ...]]:
    """Return samples with the number of the part of each, and the parts in the order in which they begin."""
    columns = {name: evidence.groups[name] for name in OF_PARTS if name in evidence.groups}
    others = {name: column for name, column in evidence.groups.items() if name not in columns}
    first, numbers = first_rows([np.zeros(evidence.num_samples, np.int16), *columns.values()])
    stored = tuple(stored_part({name: column[row].item() for name, column in columns.items()}) for row in first)
    return replace(evidence, groups={**others, PART: numbers}), stored


def first_rows(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Return the first row of each combination of values, in their order, and the number of each row's combination."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        codes = codes * len(values) + code
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return np.sort(first), place[inverse].astype(np.int16)


def stored_part(said: Mapping[str, Any]) -> StoredPart:
    """Return a part by its corruption and severity; it is called as that of a set which the suite makes."""
    kind = said.get("corruption", "").replace("_", " ")
    severity = int(said["severity"]) if "severity" in said else None
    name = said.get("corruption", "").replace(" ", "-")
    if not name:
        return StoredPart(SHIFTED if severity is None else f"severity {severity}", severity=severity)
    return StoredPart(name if severity is None else f"{name}-{severity}", kind, severity)


def thresholds_of(
    run: Parts, scores: Sequence[str], coverages: Sequence[float]
) -> tuple[dict[str, dict[str, float]], str]:
    """Return by score the thresholds that validation samples set, and why some have none."""
    if VAL not in run:
        return {}, NO_VALIDATION
    forms = run[VAL].given, run[TEST].given
    if forms[0] != forms[1]:
        return {}, OTHER_FORM.format(*forms)
    found = available({**run, TEST: run[VAL]}, scores)
    lacking = [name for name in scores if name not in found]
    reason = f"the validation samples bring no confidence {', '.join(lacking)}" if lacking else ""
    return {score: thresholds_for(each, coverages) for score, each in found.items()}, reason
