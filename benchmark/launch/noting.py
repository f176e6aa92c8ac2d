"""Note what happens to the jobs of a run, for those who watch from elsewhere: in its journal, and for TensorBoard."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmark.jobs.job import Job
from benchmark.launch.event_files import EventFiles
from benchmark.launch.queue import Event, Watch
from benchmark.live.journal import JobFacts, journal
from benchmark.store.store import Store

Left = Callable[[], float | None]
"""Returns the seconds that are left of a run, as far as that is known."""


@contextmanager
def noted(watch: Watch, left: Left, jobs: Sequence[Job], done_before: int, store: Store) -> Iterator[Watch]:
    """Yield a watcher that also notes each event in the journal of the results folder, as long as the block lasts."""
    with journal(store.root, [facts_of(job) for job in jobs], done_before) as notes:

        def watch_and_note(event: Event) -> None:
            try:
                watch(event)
            finally:  # also of the failure at which the watcher ends the run
                notes.note(event.job.folder.as_posix(), event.kind, event.values, left())

        yield watch_and_note


def facts_of(job: Job) -> JobFacts:
    epochs = job.last_epoch if job.epochs else 0
    return JobFacts(job.results_name, job.label, job.seed, job.folder.as_posix(), epochs)


@contextmanager
def with_event_files(watch: Watch, store: Store) -> Iterator[Watch]:
    """Yield a watcher that also writes learning curves for TensorBoard, as long as the block lasts."""
    files = EventFiles(store)

    def watch_and_write(event: Event) -> None:
        try:
            watch(event)
        finally:
            files.note(event)

    try:
        yield watch_and_write
    finally:
        files.close()
