"""Run jobs that train nothing: they combine the stored predictions of other jobs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmark.base.schema import build
from benchmark.interface import Combination, Derived
from benchmark.jobs.job import Job
from benchmark.jobs.members import members_of
from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import Evidence
from benchmark.store.prediction_file import at_epoch
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION_VAL, Store
from benchmark.train.outcome.predict import empty_record, refuse_collapsed, refuse_malformed, with_result
from benchmark.train.provenance import codes_of, provenance
from benchmark.train.trainer import Diverged


def combine(job: Job, method: type[Derived], store: Store) -> Record:
    """Combine the predictions of a job's members and store the result; return the job's record."""
    config = build(method.Config, job.config, job.method)
    epochs = [member.epoch for member in members_of(method, config, job.seed, job.task.epochs)]
    provenances = [finished_record(store, need).provenance for need in job.needs]
    splits = [job.measured, PREDICTION_VAL] if job.task.data.has_validation else [job.measured]
    members = {split: member_predictions(job, epochs, store, split) for split in splits}

    def combined(split: str) -> Combination:
        predictions = [member.prediction for member in members[split]]
        return method.combine(config, predictions, members.get(PREDICTION_VAL, []))

    combinations = {split: combined(split) for split in splits}
    predictions = {split: as_evidence(combinations[split], members[split]) for split in splits}
    test = predictions[job.measured]
    if not job.max_steps:
        refuse_collapsed(test, job)

    checksums = {name: store.write_prediction(job.folder, name, each) for name, each in predictions.items()}
    record = with_result(empty_record(job), job, measure(test, method.scores(test.prediction)))
    facts, origin = dict(combinations[job.measured].facts), spent_on_members(job, provenances)
    return replace(record, facts=facts, checksums=checksums, provenance=origin)


def spent_on_members(job: Job, provenances: Sequence[Provenance]) -> Provenance:
    """Return the provenance of a job with the time, machines and code of its members, in the order of `job.needs`.

    A training of which several epochs are combined counts once.
    """
    parts = list(zip(job.needs, provenances, strict=True))
    trainings = {need.folder: each for need, each in parts}.values()
    return replace(
        provenance(),
        seconds=sum(each.seconds or 0.0 for each in trainings),
        environments=sorted({name for each in trainings for name in each.environments}),
        codes=codes_of(job, [(need, each.codes or ()) for need, each in parts]),
    )


def as_evidence(combination: Combination, members: Sequence[Evidence]) -> Evidence:
    """Return a combination in the precision it is stored in, with the labels that all members must share."""
    labels = members[0].labels
    if any(not np.array_equal(member.labels, labels) for member in members):
        raise ValueError("the members predicted different images")
    prediction = replace(combination.prediction, logits=np.asarray(combination.prediction.logits, np.float32))
    evidence = Evidence(prediction, labels, members[0].posterior, members[0].ids)
    refuse_malformed(evidence, members[0].prediction.logits.shape[1])
    return evidence


def member_predictions(job: Job, epochs: Sequence[int | None], store: Store, name: str) -> list[Evidence]:
    """Return the members' stored predictions on a split, in the order of the members."""
    return [
        store.read_prediction(need.folder, at_epoch(name, epoch) if epoch else name)
        for need, epoch in zip(job.needs, epochs, strict=True)
    ]


def finished_record(store: Store, need: Job) -> Record:
    """Return the record of a job that another one needs. Raise Diverged where that job diverged."""
    record = store.read_record(need.folder)
    if record is None:
        raise FileNotFoundError(f"{need.folder}: a prediction that {need.method} should have left is not there")
    if record.diverged is not None:
        raise Diverged(f"its part of seed {need.seed} diverged: {record.diverged}")
    return record
