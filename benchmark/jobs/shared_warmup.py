"""Warm-ups that several jobs share: one training per seed leaves snapshots, and the others branch off.

A job's id and its result do not depend on it: branched and unbranched are equal to the bit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmark.jobs import Job
from benchmark.store import Store, snapshot_name


@dataclass
class Family:
    """A warm-up and the jobs that begin with it."""

    trunk: Job
    children: list[Job] = field(default_factory=list)

    def lacking(self, store: Store) -> list[Job]:
        """Children whose snapshot is not there yet."""
        folder = self.trunk.snapshot_folder
        return [job for job in self.children if not store.has_checkpoint(folder, snapshot_name(job.warmup_epochs))]


def share_warmups(jobs: Sequence[Job], store: Store) -> list[Job]:
    """The jobs, none of them done, with those joined that have a warm-up in common.

    If the warm-up is one of the jobs itself, that one leaves the snapshots. If not, a training that goes no further
    than the last of them is put in front, unless only one job would profit.
    """
    present = {job.folder: job for job in jobs}
    changed: dict[Path, Job] = {}
    in_front: dict[Path, Job] = {}
    for folder, family in families(jobs, store).items():
        children, lacking = family.children, family.lacking(store)
        epochs = tuple(sorted({job.warmup_epochs for job in lacking}))
        if epochs and folder in present:
            changed[folder] = replace(present[folder], snapshots=epochs)
        elif len(lacking) > 1:
            label = f"warm-up ({family.trunk.label})"
            in_front[children[0].folder] = replace(family.trunk, until=max(epochs), snapshots=epochs, label=label)
        else:
            children = [job for job in children if job not in lacking]
        changed |= {job.folder: replace(job, branches=True) for job in children}
    ordered = []
    for job in jobs:
        ordered += [in_front[job.folder]] if job.folder in in_front else []
        ordered.append(changed.get(job.folder, job))
    return ordered


def families(jobs: Iterable[Job], store: Store) -> dict[Path, Family]:
    """By the folder of the job that the warm-up would be by itself."""
    found: dict[Path, Family] = {}
    for job in jobs:
        if job.trunk is not None and can_branch(job, store):
            found.setdefault(job.trunk.folder, Family(job.trunk)).children.append(job)
    return found


def can_branch(job: Job, store: Store) -> bool:
    """Not a trial of a few steps, nor one that has begun by itself, nor one that must predict during the warm-up."""
    predicts_before = any(epoch <= job.warmup_epochs for epoch in job.task.evaluate_at)
    return not (job.max_steps or predicts_before or store.has_checkpoint(job.folder))


def remove_trunks(jobs: Iterable[Job], store: Store) -> None:
    """What is left of trunks that none of these jobs needs any more."""
    children = [(job, job.trunk) for job in jobs if job.trunk is not None]
    needed = {trunk.snapshot_folder for job, trunk in children if store.read_record(job.folder) is None}
    for folder in {trunk.snapshot_folder for _, trunk in children} - needed:
        store.remove_trunk(folder)
