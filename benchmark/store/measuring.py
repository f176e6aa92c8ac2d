"""Bring the measures of finished runs up to date from their stored predictions. This trains nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.measure.catalogue import NOT_KNOWN, OF_METHODS, Unavailable, confidence_of, own_confidence
from benchmark.measure.evaluate import measure, measure_scores
from benchmark.measure.measures import UNKNOWN_SCORE, Measures, ScoreMeasures
from benchmark.measure.prediction import Evidence
from benchmark.measure.sets.formulas import StoredPart, measure_set, without_logits
from benchmark.measure.sets.parts import PARTS, SetMeasures
from benchmark.measure.versions import MadeBy, measure_versions, score_version
from benchmark.store.finished import Finished
from benchmark.store.record import Record
from benchmark.store.store import Store
from benchmark.store.version_control import is_under_version_control

NEED_POSTERIOR = {"expected_risk", "expected_aurc", "expected_cost"}
"""Measures that runs have only where the true class probabilities are known, as the oracle."""
OF_TEST_IMAGES = ("humans", "groups")
"""Kinds of evaluation sets whose images are the test images, as they are."""
OWN_ALONE = "an evaluation set is read with a method's own scores alone: of all its images, no logits are kept together"
Reasons = dict[str, str]
"""Why something cannot be measured, by the name of the measure or the score."""


def up_to_date(record: Record, folder: Path, store: Store, wanted: Iterable[str] = ()) -> Record:
    """Return a record whose measures this code has made, with the wanted scores. Keep what had to be made anew."""
    new = renewed(record, folder, store, wanted)
    if is_renewed(new, record):
        keep(new, record, folder, store)
    return new


def renewed(record: Record, folder: Path, store: Store, wanted: Iterable[str]) -> Record:
    """Return a record whose measures this code has made, with the wanted scores.

    What cannot be made, as a prediction is gone, is left out of the record returned, and its `reasons` say why.
    """
    record, why_not = with_parts(record, folder, store)
    outdated = outdated_names(record)
    lacking = [name for name in dict.fromkeys(wanted) if any(name not in each.all_scores for each in parts_of(record))]
    if record.evaluation is not None:
        lacking, why_not = [], why_not | dict.fromkeys(lacking, OWN_ALONE)
    if not record.measures.scores or not (outdated or lacking):
        return replace(record, reasons=why_not) if why_not else record
    new, reasons = record, dict(why_not)
    for epoch in (None, *record.at_epochs):
        run, old = Finished(folder, store, epoch, record.checksums), measures_at(record, epoch)
        try:
            part = measured_anew(old, run, record) if outdated else old
        except Unavailable as why:
            part = without(old, outdated)
            reasons |= dict.fromkeys(outdated, str(why))
        further, missing = further_scores(part, run, [*old.further, *lacking])
        reasons |= missing
        new = with_measures(new, replace(part, further=further), epoch)
    if not (outdated | record.measures.further.keys()) & reasons.keys():
        new = replace(new, made_by=made_by_now(new))
    return replace(new, reasons=reasons)


def with_parts(record: Record, folder: Path, store: Store) -> tuple[Record, Reasons]:
    """Return the record with the parts of its evaluation set measured by this code; as it is, and why, where not."""
    if record.evaluation is None or record.evaluation.is_known:
        return record, {}
    try:
        return replace(record, evaluation=parts_anew(record, record.evaluation, folder, store)), {}
    except Unavailable as why:
        return record, {PARTS: str(why)}


def parts_anew(record: Record, old: SetMeasures, folder: Path, store: Store) -> SetMeasures:
    """Measure the parts again, with the same thresholds, from what is stored of all images and of the clean ones."""
    pool = Finished(folder, store, None, record.checksums).test
    clean = pool if old.kind in OF_TEST_IMAGES else clean_images(record, folder, store)
    some = next(iter(old.parts.values()))
    known = {name: some[name] for name in old.stored if name in some}
    stored = [
        StoredPart(name, known[name].kind, known[name].severity) if name in known else StoredPart(name)
        for name in old.stored
    ]
    coverages = [float(coverage) for coverage in next(iter(some.values())).kept]
    return measure_set(old.kind, pool, clean, stored, old.thresholds, coverages, old.no_thresholds)


def clean_images(record: Record, folder: Path, store: Store) -> Evidence:
    """Return what the evaluated run predicted of the test images: classes and confidences."""
    run = Finished(evaluated_run(record, folder, store), store)
    found = {name: own_confidence(name, run, record.method) for name in record.measures.scores}
    return without_logits(run.test, found)


def evaluated_run(record: Record, folder: Path, store: Store) -> Path:
    """Return the folder of the run that was evaluated: its task's name begins that of the evaluation's results."""
    tasks = [record.task[:end] for end, sign in enumerate(record.task) if sign == "-"]
    for task in tasks:
        for job in record.identity.get("needs", ()):
            place = Path(task, record.method, job, folder.name)
            if store.has_record(place):
                return place
    raise Unavailable("the run that it evaluates is not in this folder")


def outdated_names(record: Record) -> frozenset[str]:
    """Return the measures and scores of a record that it lacks, or that other code made.

    Scores of files that are not loaded stay as they are.
    """
    made, scores = record.made_by, record.measures.all_scores
    if not scores:
        return frozenset()
    measures = {name for name, version in measure_versions().items() if made.measures.get(name) != version}
    if record.measures.oracle is None:
        measures -= NEED_POSTERIOR
    now = score_versions(record, record.measures)
    return frozenset(measures | {name for name, version in now.items() if version and made.scores.get(name) != version})


def made_by_now(record: Record) -> MadeBy:
    """Return the hashes of the code that would make the measures of a record today."""
    before = record.made_by.scores
    now = score_versions(record, record.held_out or record.measures)
    return MadeBy(measure_versions(), {name: version or before.get(name, "") for name, version in now.items()})


def score_versions(record: Record, measures: Measures) -> dict[str, str]:
    """Return the hash of the present code of each score; empty where that is in a file that is not loaded."""
    own = {name: own_version(name, record) for name in measures.scores}
    return own | {name: score_version(name) for name in measures.further}


def own_version(name: str, record: Record) -> str:
    """Return the hash of the present code of a score that is the method's own."""
    _, version = OF_METHODS.get(record.method, (None, ""))
    return version or ("" if is_of_plugin(name, record) else score_version(name))


def is_of_plugin(name: str, record: Record) -> bool:
    """Tell whether a method's own score was computed by a plugin that is not loaded."""
    if "method" not in record.own_parts or record.method in OF_METHODS:
        return False
    return record.made_by.scores.get(name, "") not in ("", score_version(name))


def parts_of(record: Record) -> list[Measures]:
    return [record.measures, *record.at_epochs.values()]


def measures_at(record: Record, epoch: int | None) -> Measures:
    return record.measures if epoch is None else record.at_epochs[epoch]


def with_measures(record: Record, measures: Measures, epoch: int | None) -> Record:
    if epoch is None:
        return replace(record, measures=measures)
    return replace(record, at_epochs={**record.at_epochs, epoch: measures})


def measured_anew(old: Measures, run: Finished, record: Record) -> Measures:
    """Return the measures of the method's own scores from the stored prediction. Raise Unavailable where it is gone."""
    for name in old.scores:
        if is_of_plugin(name, record):
            raise Unavailable(f"the score {name} is {NOT_KNOWN}")
    try:
        return measure(run.test, {name: own_confidence(name, run, record.method) for name in old.scores})
    except ValueError as error:
        raise Unavailable(str(error)) from None


def further_scores(part: Measures, run: Finished, wanted: Iterable[str]) -> tuple[Mapping[str, ScoreMeasures], Reasons]:
    """Return the further scores of a run with those that are wanted and missing, and why others cannot be made."""
    found, reasons = dict(part.further), Reasons()
    for name in wanted:
        if name not in part.all_scores:
            try:
                found |= measure_scores(run.test, {name: confidence_of(name, run)})
            except (Unavailable, ValueError) as why:
                reasons[name] = str(why)
    return found, reasons


def without(measures: Measures, outdated: frozenset[str]) -> Measures:
    """Return the measures without those that are outdated."""

    def kept(score: ScoreMeasures) -> ScoreMeasures:
        unknown: dict[str, Any] = dict.fromkeys(outdated & vars(score).keys())
        return replace(score, **unknown)

    def kept_scores(scores: Mapping[str, ScoreMeasures]) -> dict[str, ScoreMeasures]:
        return {name: UNKNOWN_SCORE if name in outdated else kept(score) for name, score in scores.items()}

    classifier = measures.classifier
    return replace(
        measures,
        classifier=replace(classifier, **dict.fromkeys(outdated & vars(classifier).keys())),
        scores=kept_scores(measures.scores),
        further=kept_scores(measures.further),
        oracle=measures.oracle and kept(measures.oracle),
    )


@dataclass(frozen=True)
class Renewed:
    """A run of a results folder after its measures were brought up to date."""

    folder: Path
    measured: bool
    """Whether something was computed."""
    kept: bool
    """Whether it is in the run's record now."""
    reasons: Mapping[str, str]


def renew_folder(store: Store, folders: Iterable[Path], wanted: Sequence[str] = ()) -> Iterator[Renewed]:
    """Bring the measures of some runs up to date, and keep them; yield each run when it is done."""
    for folder in folders:
        record = store.read_record(folder)
        if record is not None:
            new = renewed(record, folder, store, wanted)
            measured = is_renewed(new, record)
            yield Renewed(folder, measured, measured and keep(new, record, folder, store), new.reasons)


def is_renewed(new: Record, before: Record) -> bool:
    return (new.made_by, new.evaluation) != (before.made_by, before.evaluation)


def keep(record: Record, before: Record, folder: Path, store: Store) -> bool:
    """Write a record with its new measures, and tell whether that was done.

    It is not where the record was replaced meanwhile or is under version control, where it cannot be written, or where
    another process works on the run. Then the measures are made again the next time.
    """
    if not is_under_version_control(store.root):
        with suppress(OSError), store.claim(folder) as ours:
            if ours and store.read_record(folder) == before:
                store.write_record(folder, record)
                return True
    return False
