"""Make the suites of evaluations: which sets of which runs, and what they need that is not there."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmark.base.errors import MissingData, UserError
from benchmark.base.files import say
from benchmark.base.names import canonical
from benchmark.base.units import counted
from benchmark.config.evaluation import NONE, EvaluationConfig, set_name
from benchmark.config.load import command_set
from benchmark.config.task import TaskConfig
from benchmark.data.dataset import load
from benchmark.data.evaluation.annotations import annotations
from benchmark.data.evaluation.sets import open_set
from benchmark.data.images import Facts
from benchmark.jobs.evaluations import OF_PREDICTIONS, evaluation_suite, needs_weights
from benchmark.jobs.job import Evaluated, Job
from benchmark.jobs.suite import Suite
from benchmark.launch.suites import SuiteMaker
from benchmark.store.store import Store
from benchmark.train.preflight import ABSENT

GONE = "its stored predictions are gone; train it again in another --results"
NOT_KEPT = "its final weights were not kept; train it with --keep-weights (the same bits again, in another --results)"


def wanted_sets(task: TaskConfig, names: Sequence[str] | None) -> list[EvaluationConfig]:
    """Return the evaluation sets that are meant: those of the task where none are named.

    A name is that of a set of the task, or says by itself what the set is.
    """
    own = {canonical(set_name(config)): config for config in task.evaluate}
    if names is None:
        return list(task.evaluate)
    found = [own.get(canonical(name)) or command_set(name) for name in names if canonical(name) != NONE]
    for index, config in enumerate(found):
        if set_name(config).lower() in (set_name(other).lower() for other in found[:index]):
            raise UserError(f"the evaluation set '{set_name(config)}' is named twice; name it once")
    return found


def evaluated_set(task: TaskConfig, config: EvaluationConfig, facts: Facts, maker: SuiteMaker) -> Evaluated:
    """Return what identifies a set. Refuse one that does not fit the task. A plan can do without its images."""
    if config.kind == "corruptions" and facts.floats:
        raise UserError(f"{task.name}: corruptions are made of 8-bit images, and those of '{task.data.source}' are not")
    find = annotated_set if config.kind in OF_PREDICTIONS else opened_set
    try:
        return find(task, config, facts, maker)
    except MissingData:
        if maker.needs_data(task):
            raise
        parts = len(config.used_kinds) * len(config.used_severities) if config.kind == "corruptions" else 1
        return Evaluated(set_name(config), config, ABSENT, facts.num_test * parts)


def annotated_set(task: TaskConfig, config: EvaluationConfig, facts: Facts, maker: SuiteMaker) -> Evaluated:
    loaded, _ = load(task.data, maker.folders, maker.needs_data(task))
    ids = loaded.test.rows.astype(np.int32)
    found = annotations(config, task, maker.folders, ids, facts.num_classes)
    return Evaluated(set_name(config), config, found.sha256, facts.num_test)


def opened_set(task: TaskConfig, config: EvaluationConfig, facts: Facts, maker: SuiteMaker) -> Evaluated:
    opened = open_set(config, task, maker.folders, build=maker.needs_data(task))
    if opened.remark and not maker.quiet:
        say(f"{task.name}, {set_name(config)}: {opened.remark}")
    counts = [facts.num_test if part.images is None else len(part.images) for part in opened.parts]
    return Evaluated(set_name(config), config, opened.sha256, sum(counts))


def evaluation_suites(
    suites: Sequence[Suite], names: Sequence[str] | None, maker: SuiteMaker, store: Store
) -> list[Suite]:
    """Return a suite for each evaluation set of each task, of the runs that can be evaluated on it."""
    found = []
    for suite in suites:
        for config in wanted_sets(suite.task, names):
            evaluated = evaluated_set(suite.task, config, suite.facts, maker)
            made = evaluation_suite(suite, evaluated, maker.methods, lambda job: why_not(job, store))
            found.append(made)
            if any(entry.jobs for entry in made.entries) and not maker.quiet:
                say_what_is_missing(suite, made)
    return found


def say_what_is_missing(suite: Suite, made: Suite) -> None:
    """Say which runs of a suite are not evaluated on a set, and which methods not at all."""
    pairs = zip(suite.entries, made.entries, strict=True)
    lost = sum(len(runs.jobs) - len(entry.jobs) for runs, entry in pairs if not entry.reason)
    if lost:
        say(f"{made.name}: {counted(lost, 'run')} left out: predictions are gone, or {NOT_KEPT}")
    for entry in made.entries:
        if entry.reason:
            say(f"{made.name} {entry.label}: {entry.reason}; its column stays empty")


def why_not(job: Job, store: Store) -> str:
    """Return why an evaluation cannot be done; empty where it can, has been, or follows on a training to come."""
    run, *members = job.needs
    if store.state(job.folder) == "done":
        return ""
    if store.state(run.folder) == "done" and not store.find(run.folder, run.measured).is_file():
        return GONE
    if members:
        return next((why for why in (why_not(each, store) for each in members) if why), "")
    is_done = needs_weights(job) and store.state(run.folder) == "done"
    there = any(store.has_checkpoint(folder) for folder in run.weights_folders)
    return NOT_KEPT if is_done and not there else ""


def finished_part(suite: Suite, store: Store) -> Suite:
    """Return a suite with its finished runs alone."""
    entries = []
    for entry in suite.entries:
        done = tuple(job for job in entry.jobs if store.state(job.folder) == "done")
        if done or entry.reason:
            entries.append(replace(entry, jobs=done))
    if not any(entry.jobs for entry in entries):
        raise UserError(
            f"{suite.task.name}: no finished run of it in '{store.root}' was made with these settings; give the --set "
            "and other settings that it was trained with, or train it first"
        )
    return replace(suite, entries=tuple(entries))


def refuse_empty(suites: Sequence[Suite]) -> None:
    """Raise UserError where none of the runs can be evaluated, as of a folder whose weights were not kept."""
    for suite in suites:
        if not any(entry.jobs for entry in suite.entries):
            reasons = dict.fromkeys(entry.reason for entry in suite.entries if entry.reason)
            count = counted(len(suite.entries), "method")
            raise UserError(f"{suite.name}: none of {count} can be evaluated: {'; or '.join(reasons) or 'no run'}")
