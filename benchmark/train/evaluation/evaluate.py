"""Evaluate a finished run on a set: predict what has to be predicted, and measure it."""

import time
from dataclasses import replace

import numpy as np
import torch

from benchmark.data.evaluation.parts import EvaluationSet
from benchmark.data.evaluation.sets import open_set
from benchmark.jobs.evaluations import OF_PREDICTIONS
from benchmark.jobs.job import Evaluated, Job
from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import CONFIDENCE, Evidence
from benchmark.measure.scores import Confidence
from benchmark.measure.sets.formulas import StoredPart, measure_set
from benchmark.store.measuring import made_by_now
from benchmark.store.provenance import Provenance
from benchmark.store.record import Record
from benchmark.store.store import PREDICTION
from benchmark.train.context import Context
from benchmark.train.evaluation.part_files import PartFiles
from benchmark.train.evaluation.pools import FinishedRun, annotated, pool_of
from benchmark.train.evaluation.predictors import predictor_of
from benchmark.train.outcome.combine import finished_record
from benchmark.train.outcome.predict import empty_record
from benchmark.train.provenance import codes_of, environment, provenance
from benchmark.train.pulse import Pulse


def evaluate(job: Job, context: Context, device: torch.device, pulse: Pulse) -> Record:
    """Return the record of a run on an evaluation set, still unwritten; its predictions are stored."""
    started, run, evaluated = time.monotonic(), job.needs[0], evaluated_by(job)
    before = finished_record(context.store, run)
    finished = FinishedRun(run, context.store, context.methods.get(run.method).scores)
    files = PartFiles(context.store, job.folder)
    stored: tuple[StoredPart, ...] = ()
    if evaluated.config.kind in OF_PREDICTIONS:
        pool = annotated(finished, evaluated, context.folders)
    else:
        opened = opened_as_planned(run, evaluated, context)
        parts = files.all_of(opened.parts, predictor_of(job, context, device, pulse, opened))
        pool, stored = pool_of(finished, evaluated, opened.parts, parts)
    measured = measure_set(
        evaluated.config.kind,
        pool,
        finished.clean,
        stored,
        finished.thresholds,
        run.task.coverages,
        finished.no_thresholds,
    )
    files.checksums[PREDICTION] = context.store.write_prediction(job.folder, PREDICTION, pool)
    record = replace(empty_record(job), measures=measure(pool, confidences_in(pool)), evaluation=measured)
    record = replace(record, made_by=made_by_now(record), checksums=files.checksums)
    return replace(record, provenance=provenance_of(job, device, time.monotonic() - started, before.provenance))


def evaluated_by(job: Job) -> Evaluated:
    if job.evaluates is None:
        raise ValueError(f"{job.name} evaluates nothing")
    return job.evaluates


def opened_as_planned(run: Job, evaluated: Evaluated, context: Context) -> EvaluationSet:
    """Return the images of a set. Raise ValueError where they are not those that the job was planned with."""
    opened = open_set(evaluated.config, run.task, context.folders, build=False)
    if opened.sha256 != evaluated.sha256:
        raise ValueError("the images of the evaluation set have changed since this job was planned; run it again")
    return opened


def confidences_in(pool: Evidence) -> dict[str, Confidence]:
    """Return the confidences that are stored beside a prediction, by score."""
    aux = pool.prediction.aux
    stored = {name: each for name, each in aux.items() if name.startswith(CONFIDENCE)}
    return {name.removeprefix(CONFIDENCE): np.asarray(each, np.float64) for name, each in stored.items()}


def provenance_of(job: Job, device: torch.device, seconds: float, run: Provenance) -> Provenance:
    return replace(
        provenance(),
        seconds=seconds,
        environments=[environment(device, job.task.threads, 1)],
        codes=codes_of(job, [(job.needs[0], run.codes or ())]),
    )
