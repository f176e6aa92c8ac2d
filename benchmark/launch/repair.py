"""Move aside results that must be computed again: damaged ones, and on request those that other code made."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmark.base.files import say
from benchmark.jobs.job import Job
from benchmark.store.stale import installed_torch, stale_reasons
from benchmark.store.store import Store


def set_damaged_aside(jobs: Iterable[Job], store: Store) -> None:
    """Check every checksum of these jobs and their trunks, and move aside what is damaged and not in use."""
    trunks = (job.trunk.snapshot_folder for job in jobs if job.trunk is not None)
    folders = list(dict.fromkeys([*(job.folder for job in jobs), *trunks]))
    with ThreadPoolExecutor() as pool:
        for folder, suspected in zip(folders, pool.map(store.damage, folders), strict=True):
            if suspected:
                repair(folder, store)


def repair(folder: Path, store: Store) -> None:
    """Move aside the damaged files of a folder, unless another process uses it."""
    with store.claim(folder) as ours:
        damage = store.damage(folder) if ours else {}
        for name, why in damage.items():
            say(f"'{store.find(folder, name)}' is damaged ({why}): moved aside, to be made again")
        if damage:
            store.set_aside(folder, damage)


def stale_jobs(jobs: Iterable[Job], store: Store) -> list[Job]:
    """Return the finished jobs that other code or another torch has made."""
    torch = installed_torch()
    read = ((job, store.read_record(job.folder)) for job in jobs)
    return [job for job, record in read if record is not None and stale_reasons(record, job.code, torch)]


def set_stale_aside(jobs: Iterable[Job], store: Store) -> None:
    """Move aside what other code has made of these jobs, unless another process is at work on it."""
    for job in jobs:
        with store.claim(job.folder) as ours:
            if ours and stale_jobs([job], store):
                store.set_stale_aside(job.folder)
