"""Plan evaluations: a job for each finished run and evaluation set, which trains nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from benchmark.base.schema import build
from benchmark.interface import Derived
from benchmark.jobs.code_version import CORE, combined, suite_hash
from benchmark.jobs.job import Evaluated, Job, Methods
from benchmark.jobs.members import members_of
from benchmark.jobs.suite import Entry, Suite

OF_PREDICTIONS = ("humans", "groups")
"""Kinds of sets that are made of the predictions of the test images: they need no weights."""
OF_EPOCHS = "combines states of earlier epochs, whose weights are not kept"
PACKAGES = ("data/corruptions", "data/evaluation", "train/evaluation")


@lru_cache(maxsize=1)
def evaluation_hash() -> str:
    """Return the hash of the code that makes evaluation sets and predicts them."""
    return suite_hash(path.read_bytes() for package in PACKAGES for path in sorted((CORE / package).glob("*.py")))


def evaluation_job(run: Job, evaluated: Evaluated) -> Job:
    """Return the job that predicts a set with the final network of a run, or combines what its members predict."""
    combines = run.needs and not run.takes_over and evaluated.config.kind not in OF_PREDICTIONS
    members = tuple(evaluation_job(need, evaluated) for need in run.needs) if combines else ()
    return replace(
        run,
        needs=(run, *members),
        takes_over=False,
        evaluates=evaluated,
        trunk=None,
        warmup_epochs=0,
        stage_epochs=0,
        code=combined([evaluation_hash(), run.code]),
    )


def needs_weights(job: Job) -> bool:
    """Tell whether a job predicts a set with the final network of the run that it evaluates."""
    is_single = len(job.needs) == 1
    return job.evaluates is not None and job.evaluates.config.kind not in OF_PREDICTIONS and is_single


def evaluation_suite(suite: Suite, evaluated: Evaluated, methods: Methods, lacks: Callable[[Job], str]) -> Suite:
    """Return the evaluations of the runs of a suite on one of its sets. `lacks` says why one cannot be done."""
    entries = tuple(evaluation_entry(entry, evaluated, methods, lacks) for entry in suite.entries)
    return replace(suite, entries=entries, evaluated=evaluated, factors=())


def evaluation_entry(entry: Entry, evaluated: Evaluated, methods: Methods, lacks: Callable[[Job], str]) -> Entry:
    """Return the entry of a label on a set: a job for each run that can be evaluated."""
    by_weights = evaluated.config.kind not in OF_PREDICTIONS
    if by_weights and any(combines_epochs(run, methods) for run in entry.jobs):
        return replace(entry, jobs=(), reason=OF_EPOCHS)
    jobs = [evaluation_job(run, evaluated) for run in entry.jobs]
    reasons = [lacks(job) for job in jobs]
    able = tuple(job for job, reason in zip(jobs, reasons, strict=True) if not reason)
    return replace(entry, jobs=able, reason=entry.reason or ("" if able else next(iter(reasons), "")))


def combines_epochs(run: Job, methods: Methods) -> bool:
    """Tell whether a run combines states of a training before its end."""
    method = methods.get(run.method)
    if not issubclass(method, Derived):
        return False
    config = build(method.Config, run.config, run.method)
    return any(member.epoch is not None for member in members_of(method, config, run.seed, run.task.epochs))
