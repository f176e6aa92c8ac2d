"""Jobs that train nothing: a prediction made of the stored predictions of other jobs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmark.evaluate import measure
from benchmark.interface import Combination, Derived
from benchmark.jobs import Job
from benchmark.outputs import heading, refuse_collapsed, refuse_malformed, told
from benchmark.planner import members_of
from benchmark.prediction import Evidence
from benchmark.provenance import codes_of, provenance
from benchmark.schema import build
from benchmark.store import PREDICTION_VAL, Store, at_epoch
from benchmark.trainer import Diverged


def combine(job: Job, method: type[Derived], store: Store) -> dict[str, Any]:
    """The record of a derived job; its predictions are stored like those of any other."""
    config = build(method.Config, job.config, job.method)
    epochs = [member.epoch for member in members_of(method, config, job.seed, job.task.epochs)]
    records = [finished(store, need) for need in job.needs]
    validation = stored(job, epochs, store, PREDICTION_VAL) if job.task.data.has_validation else []
    splits = {job.measured: stored(job, epochs, store, job.measured), PREDICTION_VAL: validation}
    made = {
        name: method.combine(config, [member.prediction for member in members], validation)
        for name, members in splits.items()
        if members
    }
    evidence = {name: as_evidence(made[name], splits[name]) for name in made}
    if not job.max_steps:
        refuse_collapsed(evidence[job.measured], job)
    checksums = {name: store.write_prediction(job.folder, name, found) for name, found in evidence.items()}
    provenances = {need.folder: record["provenance"] for need, record in zip(job.needs, records, strict=True)}.values()
    spent = {
        "seconds": sum(each["seconds"] for each in provenances),
        "environments": sorted({environment for each in provenances for environment in each["environments"]}),
        "codes": codes_of(job, [(n, r["provenance"]["codes"]) for n, r in zip(job.needs, records, strict=True)]),
    }
    return {
        **heading(job),
        **told(job, measure(evidence[job.measured], method.scores(evidence[job.measured].prediction))),
        "notes": [],
        "facts": dict(made[job.measured].facts),
        "checksums": checksums,
        "provenance": {**provenance(), **spent},
    }


def as_evidence(made: Combination, members: Sequence[Evidence]) -> Evidence:
    """A combination in the precision it is stored in, with the labels that all members must share."""
    labels = members[0].labels
    if any(not np.array_equal(member.labels, labels) for member in members):
        raise ValueError("the members predicted different images")
    logits = np.asarray(made.prediction.logits, np.float32)
    evidence = Evidence(replace(made.prediction, logits=logits), labels, members[0].posterior, members[0].ids)
    refuse_malformed(evidence, members[0].prediction.logits.shape[1])
    return evidence


def stored(job: Job, epochs: Sequence[int | None], store: Store, name: str) -> list[Evidence]:
    """The members' predictions on a split, in the order of the members."""
    return [
        store.read_prediction(need.folder, at_epoch(name, epoch) if epoch else name)
        for need, epoch in zip(job.needs, epochs, strict=True)
    ]


def finished(store: Store, need: Job) -> dict[str, Any]:
    record = store.read_record(need.folder)
    if record is None:
        raise FileNotFoundError(f"{need.folder}: a prediction that {need.method} should have left is not there")
    if "diverged" in record:
        raise Diverged(f"its part of seed {need.seed} diverged: {record['diverged']}")
    return record
