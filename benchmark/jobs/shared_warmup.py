"""Share trainings between jobs: a warm-up, which others branch off, and a whole one, whose weights others average.

A job's id and its result do not depend on this: with and without it they are equal to the bit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmark.config.ingredients import AveragingConfig
from benchmark.jobs.job import Job
from benchmark.store.store import Store, snapshot_name


def share_warmups(jobs: Sequence[Job], store: Store) -> list[Job]:
    """Return the jobs, none of them done, such that those with the same warm-up train it once.

    If the warm-up is itself one of the jobs, that job saves the snapshots. If not, a training that ends with the last
    snapshot is put in front, unless only one job would use it.
    """
    present = {job.folder: job for job in jobs}
    changed: dict[Path, Job] = {}
    in_front: dict[Path, Job] = {}
    for trunk, children in families(jobs, store):
        saved = trunk.snapshot_folder
        waiting = [job for job in children if not store.has_checkpoint(saved, snapshot_name(job.warmup_epochs))]
        epochs = tuple(sorted({job.warmup_epochs for job in waiting}))
        if epochs and trunk.folder in present:
            changed[trunk.folder] = replace(present[trunk.folder], snapshots=epochs)
        elif len(waiting) > 1:
            label = f"warm-up ({trunk.label})"
            in_front[children[0].folder] = replace(trunk, until=max(epochs), snapshots=epochs, label=label)
        else:
            children = [job for job in children if job not in waiting]
        changed |= {job.folder: replace(job, branches=True) for job in children}
    ordered = []
    for job in jobs:
        if job.folder in in_front:
            ordered.append(in_front[job.folder])
        ordered.append(changed.get(job.folder, job))
    return ordered


def share_averages(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs such that each training takes the averages of its weights that others of them wait for."""
    wanted: dict[Path, list[AveragingConfig]] = {}
    for job in jobs:
        for trained in averaged_trainings(job):
            configs = wanted.setdefault(trained.folder, [])
            configs += [job.task.averaging] if job.task.averaging not in configs else []
    return [with_averages(job, wanted) for job in jobs]


def averaged_trainings(job: Job) -> list[Job]:
    """Return the training whose averaged weights a job starts from; a second stage may have to train it itself."""
    if not job.task.averaging.is_on:
        return []
    if job.stage_epochs and job.trunk is not None:
        return [job, job.trunk]
    return [job.needs[0]] if job.takes_over else []


def with_averages(job: Job, wanted: Mapping[Path, Sequence[AveragingConfig]]) -> Job:
    """Return a job, and what it branches off, with the averages that are wanted of them."""
    if job.trunk is not None and job.trunk.folder in wanted:
        job = replace(job, trunk=replace(job.trunk, averages=tuple(wanted[job.trunk.folder])))
    return replace(job, averages=tuple(wanted[job.folder])) if job.folder in wanted else job


def families(jobs: Iterable[Job], store: Store) -> list[tuple[Job, list[Job]]]:
    """Return each warm-up, as the job that it would be by itself, with the jobs that can start from it."""
    by_folder: dict[Path, tuple[Job, list[Job]]] = {}
    for job in jobs:
        if job.trunk is not None and can_branch(job, store):
            by_folder.setdefault(job.trunk.folder, (job.trunk, []))[1].append(job)
    return list(by_folder.values())


def can_branch(job: Job, store: Store) -> bool:
    """Return whether a job can branch off: not if it trains a few steps only, has begun, or predicts in the warm-up."""
    predicts_before = not job.stage_epochs and any(epoch <= job.warmup_epochs for epoch in job.task.evaluate_at)
    return not (job.max_steps or predicts_before or store.has_checkpoint(job.folder))


def remove_trunks(jobs: Iterable[Job], store: Store) -> None:
    """Remove the files of trunks that none of these jobs needs any more."""
    children = [(job, job.trunk) for job in jobs if job.trunk is not None]
    needed = {trunk.snapshot_folder for job, trunk in children if store.read_record(job.folder) is None}
    for folder in {trunk.snapshot_folder for _, trunk in children} - needed:
        store.remove_trunk(folder)
