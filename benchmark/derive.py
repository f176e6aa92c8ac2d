"""Jobs that train nothing: a prediction made of the stored predictions of other jobs."""

from collections.abc import Sequence
from typing import Any

from benchmark.evaluate import measure
from benchmark.interface import Derived
from benchmark.jobs import Job, members_of
from benchmark.outputs import heading
from benchmark.prediction import Evidence
from benchmark.provenance import provenance
from benchmark.schema import build
from benchmark.store import PREDICTION, PREDICTION_VAL, Store, at_epoch
from benchmark.trainer import Diverged


def combine(job: Job, method: type[Derived], store: Store) -> dict[str, Any]:
    """The record of a derived job; its predictions are stored like those of any other."""
    config = build(method.Config, job.config, job.method)
    epochs = [member.epoch for member in members_of(method, config, job.seed, job.task.epochs)]
    records = [finished(store, need) for need in job.needs]
    validation = stored(job, epochs, store, PREDICTION_VAL) if job.task.data.has_validation else []
    checksums, facts, measured = {}, {}, {}
    for name, members in {PREDICTION_VAL: validation, PREDICTION: stored(job, epochs, store, PREDICTION)}.items():
        if members:
            made = method.combine(config, [member.prediction for member in members], validation)
            evidence = Evidence(made.prediction, members[0].labels, members[0].posterior)
            checksums[name] = store.write_prediction(job.folder, name, evidence)
            facts, measured = dict(made.facts), measure(evidence, method.scores(made.prediction))
    spent = {
        "seconds": sum(record["provenance"]["seconds"] for record in {r["seed"]: r for r in records}.values()),
        "environments": sorted({e for record in records for e in record["provenance"]["environments"]}),
    }
    return {
        **heading(job),
        **measured,
        "notes": [],
        "facts": facts,
        "checksums": checksums,
        "provenance": {**provenance(), **spent},
    }


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
