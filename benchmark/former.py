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


def any_begun(jobs: Iterable[Job], store: Store) -> bool:
    return any(store.state(job.folder) != "new" for job in jobs)
