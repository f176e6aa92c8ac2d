"""Keep older results valid: give a job the id under which its results are already stored."""

from collections.abc import Iterable
from dataclasses import replace

from benchmark.jobs.job import Job
from benchmark.jobs.suite import Entry, Suite
from benchmark.store.store import Store


def suite_as_found(suite: Suite, store: Store) -> Suite:
    """Return a suite in which entries have their older id where only that has been begun."""
    return replace(suite, entries=tuple(entry_as_found(entry, store) for entry in suite.entries))


def entry_as_found(entry: Entry, store: Store) -> Entry:
    """Return an entry with the older id where only that has been begun. All seeds of an entry share their id."""
    if all(with_bytes_hash(job).id == job.id for job in entry.jobs[:1]):
        return entry
    older = tuple(map(with_bytes_hash, entry.jobs))
    return replace(entry, jobs=older) if any_begun(older, store) and not any_begun(entry.jobs, store) else entry


def with_bytes_hash(job: Job) -> Job:
    """Return the job with the id that it had when a plugin's comments and layout counted."""
    trunk = with_bytes_hash(job.trunk) if job.trunk else None
    return replace(job, source_sha256=job.bytes_sha256, needs=tuple(map(with_bytes_hash, job.needs)), trunk=trunk)


def trial_as_found(job: Job, store: Store) -> Job:
    """Return a trial, or the finished job that it was before trials had images of their own."""
    older = before_held_out(job)
    candidates = (job, *older, *map(with_bytes_hash, older))
    return next((each for each in candidates if store.has_record(each.folder)), job)


def before_held_out(job: Job) -> list[Job]:
    """Return the job that a trial once was: the held-out images were its validation images, and it measured the test.

    It is the same training with the same result on the held-out images, if no other validation images take part in it.
    Otherwise there is no such job: the images that picked the epoch also judged it.
    """
    data = job.task.data
    if not job.held_out or data.has_validation:
        return []
    task = replace(job.task, data=replace(data, val=job.held_out, official_val=False, val_images=0))
    needs = tuple(old for need in job.needs for old in before_held_out(need))
    return [replace(job, task=task, needs=needs, held_out=0.0)]


def any_begun(jobs: Iterable[Job], store: Store) -> bool:
    return any(store.state(job.folder) != "new" for job in jobs)
