"""Check all runs that a user brings, then store those that are new. Nothing is written before all are checked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.names import canonical
from benchmark.imports.checks import Allowed, check_part, check_parts
from benchmark.imports.evidence import check_score_names, confidences, evidence_of, score_names
from benchmark.imports.fields import SET, TEST, ImportedRun, known_fields, parts_of
from benchmark.imports.keep import COVERAGES, Parts, Place, file_checksums, is_same, make_record, store_run
from benchmark.imports.npz import read_npz
from benchmark.imports.pools import RunOnSet
from benchmark.imports.sets import AllParts, brought_sets, group_warnings
from benchmark.imports.together import (
    ANOTHER_TASK,
    Samples,
    SetContent,
    check_seeds,
    order_like,
    permuted_classes,
    samples_of,
)
from benchmark.measure.catalogue import POST_HOC
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.prediction_file import evidence_in
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION, Store, folder_of

MOST_LETTERS = 80


@dataclass(frozen=True)
class CheckedRun:
    """A run, or one evaluation set of it, that can be stored."""

    run: ImportedRun
    place: Place
    of_set: str
    """The evaluation set; empty for the test samples."""
    scores: tuple[str, ...]
    order: NDArray[np.int64] | None
    """Puts its samples into the order of the first run; None where they stand in it."""
    warnings: tuple[str, ...] = ()
    stored: Record | None = None
    """The record of a run that is there with the same content."""
    order_of_test: NDArray[np.int64] | None = None
    """The same order of the test samples, where this is an evaluation set."""

    def parts(self, allowed: Allowed, loaded: AllParts | None = None) -> Parts:
        """Return what is stored and measured, of arrays that are loaded, or read once more."""
        loaded = loaded or all_parts(self.run)
        return self.on_set(allowed, loaded).parts if self.of_set else read(own_parts(loaded), allowed, self.order)

    def on_set(self, allowed: Allowed, loaded: AllParts) -> RunOnSet:
        """Return the evaluation set with the run."""
        brought = brought_sets(loaded, self.run.file, allowed)[self.of_set]
        of_set = read(brought.parts(loaded), allowed, self.order)
        of_run = read(own_parts(loaded), allowed, self.order_of_test)
        return RunOnSet(brought, of_set, of_run, self.run.scores, f"{self.run.file}, set {self.of_set}")


@dataclass
class Intake:
    """The runs of one command on their way into a results folder, or only to be measured, where there is no folder."""

    task: str
    allowed: Allowed
    store: Store | None = None
    replace: bool = False
    manifests: Mapping[str, Manifest] = field(default_factory=dict)
    """What the folder shows already, by task."""
    first: dict[str, Samples] = field(default_factory=dict)
    """By task, the samples that all its runs must have."""
    replaced: set[tuple[str, int]] = field(default_factory=set)
    """Methods and seeds whose stored runs this command replaces."""
    coverages: Sequence[float] = COVERAGES
    """In per cent: what thresholds of evaluation sets are set for."""

    def check(self, runs: Sequence[ImportedRun], show: Callable[[Any], Any] = iter) -> list[CheckedRun]:
        """Return what can be stored; refuse the first mistake of any run."""
        check_seeds(runs)
        for label in dict.fromkeys(run.method for run in runs):
            self.check_label(label, [run.method for run in runs])
        if self.replace:
            self.replaced = {(run.method, run.seed) for run in runs}
        found = [checked for run in show(runs) for checked in self.check_run(run)]
        self.check_columns(found)
        return found

    def check_label(self, label: str, beside: Sequence[str]) -> None:
        """Refuse the name of a method that cannot be told from another."""
        if not isinstance(label, str) or not label.strip() or not label.isprintable() or len(label) > MOST_LETTERS:
            raise UserError(f"method '{label}': expected a name of 1 to {MOST_LETTERS} letters, digits and signs")
        alike = [other for other in beside if other != label and canonical(other) == canonical(label)]
        shown = self.manifests[self.task].entries if self.task in self.manifests else ()
        alike += [
            e.label for e in shown if canonical(e.label) == canonical(label) and not (e.imported and e.label == label)
        ]
        if alike:
            raise UserError(
                f"method '{label}': a method of this table is called '{alike[0]}' already; give it another name"
            )

    def check_columns(self, found: Sequence[CheckedRun]) -> None:
        """Refuse a method that is called as another one with a score is: both would be one column."""
        for task in dict.fromkeys(each.place.task for each in found):
            entries = self.manifests[task].entries if task in self.manifests else ()
            own = [each for each in found if each.place.task == task]
            scores = {entry.label: {*POST_HOC, *self.stored_scores(task, entry)} for entry in entries}
            for each in own:
                scores.setdefault(each.place.label, set(POST_HOC)).update(each.scores)
            columns = {canonical(f"{label}+{score}"): (label, score) for label in scores for score in scores[label]}
            for name in scores:
                if canonical(name) in columns:
                    label, score = columns[canonical(name)]
                    column = f"is the column of {label} with the score {score}"
                    raise UserError(f"method '{name}' {column}; give one of them another name")

    def stored_scores(self, task: str, entry: ManifestEntry) -> list[str]:
        """Return the scores of the first run of an entry that is there."""
        folders = (folder_of(task, entry.method, entry.job, seed) for seed in entry.seeds)
        records = (self.store.read_record(folder) for folder in folders) if self.store else iter(())
        first = next((record for record in records if record is not None), None)
        return [] if first is None else list(first.measures.scores)

    def check_run(self, run: ImportedRun) -> Iterator[CheckedRun]:
        """Yield the run and each of its evaluation sets, checked."""
        loaded = all_parts(run)
        fields = own_parts(loaded)
        for part in fields:
            check_part(fields[part], part, f"{run.file}, {part}" if part else run.file, self.allowed)
        check_parts(fields, run.file)
        first = self.checked_samples(run, fields)
        yield self.with_stored(first, loaded)
        for of_set in brought_sets(loaded, run.file, self.allowed):
            yield self.with_stored(self.checked_set(first, of_set, loaded), loaded)

    def checked_samples(self, run: ImportedRun, fields: AllParts) -> CheckedRun:
        """Compare the samples of a run with those of the others, and find its scores."""
        named_parts = fields if run.scores else {TEST: fields[TEST]}
        parts = read(named_parts, self.allowed)
        order = self.order_of(samples_of(parts[TEST], run.file), self.task)
        check_score_names(parts[TEST], run.file)
        confidences(parts, run.scores, run.file)
        scores = score_names(parts[TEST], run.scores)
        warnings = (*permuted_classes(parts[TEST], run.file), *group_warnings(fields[TEST], run.file))
        return CheckedRun(run, Place(self.task, run.method), "", scores, order, warnings)

    def checked_set(self, first: CheckedRun, of_set: str, loaded: AllParts) -> CheckedRun:
        """Compare the samples of an evaluation set with those of the other runs, and find its scores."""
        run, task = first.run, f"{self.task}-{of_set}"
        checked = CheckedRun(run, Place(task, run.method), of_set, (), None, order_of_test=first.order)
        on_set = checked.on_set(self.allowed, loaded)
        if on_set.brought.has_own_samples:
            check_score_names(on_set.of_set[TEST], on_set.where)
        order = self.order_of(samples_of(on_set.pool, on_set.where, on_set.content), task)
        warnings = permuted_classes(on_set.pool, on_set.where) if on_set.brought.is_shift else ()
        return replace(checked, scores=on_set.scores, order=order, warnings=tuple(warnings))

    def order_of(self, samples: Samples, task: str) -> NDArray[np.int64] | None:
        """Return the order in which samples are those of the first run of a task; None where they stand in it."""
        if task not in self.first:
            self.first[task] = self.stored_samples(task) or samples
        first = self.first[task]
        order = order_like(samples, first)
        if first.ids is None and samples.ids is not None:
            self.first[task] = replace(first, ids=samples.ids)  # the rows agree: these are the names of them all
        return order

    def stored_samples(self, task: str) -> Samples | None:
        """Return the samples of the runs of a task that are there, with ids if any has them; None if it is new."""
        manifest = self.manifests.get(task)
        if manifest is None or self.store is None:
            return None
        found = None
        for entry in manifest.known_entries:
            for seed in entry.seeds:
                folder = folder_of(task, entry.method, entry.job, seed)
                path = self.store.find(folder, PREDICTION)
                if (entry.label, seed) in self.replaced or not (self.store.has_record(folder) and path.is_file()):
                    continue
                record = self.store.read_record(folder)
                content = None if record is None or record.evaluation is None else SetContent.of(record.evaluation)
                samples = samples_of(evidence_in(read_npz(path)), f"{entry.label} of {task}", content)
                if found is None or samples.ids is not None:
                    found = samples
                if found.ids is not None:
                    return found
        if found is None and not all(entry.imported for entry in manifest.known_entries):
            raise UserError(
                f"the task {task} in '{self.store.root}' has no finished run with predictions, so nothing shows that "
                f"the samples are the same; {ANOTHER_TASK}"
            )
        return found

    def with_stored(self, checked: CheckedRun, loaded: AllParts) -> CheckedRun:
        """Add the record of a run that is there. Refuse one with other content, unless it is to be replaced."""
        folder = checked.place.folder(checked.run.seed)
        record = self.store.read_record(folder) if self.store else None
        if record is None:
            return checked
        if is_same(record, file_checksums(checked.parts(self.allowed, loaded)), checked.scores):
            return replace(checked, stored=record)
        if not self.replace:
            raise UserError(
                f"{checked.run.file}: {checked.place.label} with seed {checked.run.seed} is in the task "
                f"{checked.place.task} already, with other content; add --replace to replace it"
            )
        return checked

    def keep(self, checked: CheckedRun) -> Record:
        """Measure a run, and store it where there is a folder. What is stored already stays as it is."""
        if checked.stored is not None:
            return checked.stored
        loaded = all_parts(checked.run)
        on_set = checked.on_set(self.allowed, loaded) if checked.of_set else None
        parts = on_set.parts if on_set else checked.parts(self.allowed, loaded)
        given = (on_set.of_run if on_set else parts)[TEST].given
        normalised = self.allowed.normalise and given == "probabilities"
        record = make_record(checked.run, checked.place, parts, checked.scores, given=given, normalised=normalised)
        if on_set:
            record = replace(record, evaluation=on_set.measures(self.coverages))
        if self.store is not None:
            store_run(record, parts, checked.place.folder(checked.run.seed), self.store)
        return record


def all_parts(run: ImportedRun) -> AllParts:
    return parts_of(known_fields(run.load(), run.file))


def own_parts(loaded: AllParts) -> AllParts:
    """Return the parts of a run that are no evaluation sets."""
    return {part: fields for part, fields in loaded.items() if not part.startswith(f"{SET}.")}


def read(parts: AllParts, allowed: Allowed, order: NDArray[np.int64] | None = None) -> Parts:
    """Return the predictions in the fields of each part; `order` sorts the test samples."""
    orders = {TEST: order}
    return {
        part: evidence_of(fields, normalise=allowed.normalise, order=orders.get(part)) for part, fields in parts.items()
    }
