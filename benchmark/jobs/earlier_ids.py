"""Older results stand: a job goes by the id under which it is already there."""

from collections.abc import Iterable
from dataclasses import replace

from benchmark.jobs import Entry, Job, Suite
from benchmark.store import Store


def suite_as_found(suite: Suite, store: Store) -> Suite:
    return replace(suite, entries=tuple(entry_as_found(entry, store) for entry in suite.entries))


def entry_as_found(entry: Entry, store: Store) -> Entry:
    """All seeds of an entry share their id: the older one where only that has been begun."""
    former = tuple(map(by_bytes, entry.jobs))
    if [job.id for job in former] == [job.id for job in entry.jobs]:
        return entry
    return replace(entry, jobs=former) if any_begun(former, store) and not any_begun(entry.jobs, store) else entry


def by_bytes(job: Job) -> Job:
    """The job as it was identified when a plugin's comments and layout counted."""
    trunk = by_bytes(job.trunk) if job.trunk else None
    return replace(job, source_sha256=job.bytes_sha256, needs=tuple(map(by_bytes, job.needs)), trunk=trunk)


def trial_as_found(job: Job, store: Store) -> Job:
    """A trial, or the finished job that it was before trials had images of their own."""
    former = [each for old in before_held_out(job) for each in (old, by_bytes(old))]
    return next((old for old in former if store.has_record(old.folder) and not store.has_record(job.folder)), job)


def before_held_out(job: Job) -> list[Job]:
    """The job that a trial once was: what is held out was called validation, and the test images were measured too.

    It is the same training, and says the same of the images held out, where no other validation images have a part in
    it. Where they have, there is none: those that picked the epoch judged it too.
    """
    data = job.task.data
    if not job.held_out or data.has_validation:
        return []
    task = replace(job.task, data=replace(data, val=job.held_out, official_val=False, val_images=0))
    needs = tuple(old for need in job.needs for old in before_held_out(need))
    return [replace(job, task=task, needs=needs, held_out=0.0)]


def any_begun(jobs: Iterable[Job], store: Store) -> bool:
    return any(store.state(job.folder) != "new" for job in jobs)
