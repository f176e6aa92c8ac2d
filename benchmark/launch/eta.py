"""Estimate when a run will end, from what its jobs have taken so far. Recent epochs weigh most."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmark.jobs.job import Job
from benchmark.launch.placement import Device, make_works, simulate

NEWEST = 0.2
"""Weight of the newest epoch in a mean of many; those before share the rest in the same way."""
TABLES_SECONDS, TABLES_SECONDS_PER_JOB = 1.0, 0.01
"""What tables and report take in the end, by and large."""


class Recent:
    """Running means by name, and by every shorter name that it begins with."""

    def __init__(self) -> None:
        self.means: dict[tuple[str, ...], float] = {}
        self.counts: Counter[tuple[str, ...]] = Counter()

    def add(self, name: tuple[str, ...], value: float) -> None:
        for length in range(len(name) + 1):
            known = self.means.get(name[:length], value)
            self.counts[name[:length]] += 1
            self.means[name[:length]] = known + max(NEWEST, 1 / self.counts[name[:length]]) * (value - known)

    def of(self, name: tuple[str, ...]) -> float | None:
        """Return the mean of the nearest name that is known: this method, its task, any task."""
        names = (name[:length] for length in range(len(name), -1, -1))
        return next((self.means[name] for name in names if name in self.means), None)


class Eta:
    """Knows what is left of each job, and what an epoch and all the rest of a job have taken."""

    def __init__(self, jobs: Sequence[Job], workers: int = 1, *, tables: bool = False) -> None:
        self.jobs, self.at_a_time = jobs, workers
        self.begun: dict[Path, float] = {}
        self.last_news: dict[Path, float] = {}
        self.predicted_end: dict[Path, float] = {}
        self.most_batches: Counter[str] = Counter()
        self.in_epochs: dict[Path, float] = {}
        self.to_go = {job.folder: float(job.epochs) for job in jobs}
        self.ended: set[Path] = set()
        self.starts = 0
        self.starting: set[Path] = set()
        """First jobs of workers, which bear their start, until it is over."""
        self.epochs, self.outside = Recent(), Recent()
        self.tables = TABLES_SECONDS + TABLES_SECONDS_PER_JOB * len(jobs) if tables else 0.0

    def started(self, job: Job) -> None:
        if self.starts < self.at_a_time:
            self.starting.add(job.folder)
        self.starts += 1
        self.begun[job.folder] = self.last_news[job.folder] = time.monotonic()
        self.in_epochs[job.folder] = 0.0
        self.at_a_time = max(self.at_a_time, len(self.begun))

    def within(self, job: Job, epoch: int, part: float, seconds: float | None = None) -> None:
        """Note how far a job has come in an epoch, and how long a whole one seems to take."""
        name = (job.results_name, trained_by(job, epoch))
        if seconds is not None and name not in self.epochs.means:
            self.epochs.add(name, seconds)
        self.to_go[job.folder] = job.last_epoch - epoch - part

    def predicting(self, job: Job, seconds: float, batches: int) -> None:
        """Note how much is left of the split that a job predicts: its end, if no other split is larger."""
        self.most_batches[job.results_name] = max(self.most_batches[job.results_name], batches)
        if batches == self.most_batches[job.results_name]:
            self.predicted_end[job.folder] = time.monotonic() + seconds

    def epoch(self, job: Job, epochs_done: int, seconds: float | None = None) -> None:
        """Note that an epoch has ended, and how long it took by itself."""
        now, left = time.monotonic(), job.last_epoch - epochs_done
        if seconds is None:
            seconds = now - self.last_news[job.folder]
        # A trial of a few steps leaps over epochs; a resumed job begins in the middle, but trains one at a time.
        passed = max(round(self.to_go[job.folder]) - left, 1) if job.max_steps else 1
        self.epochs.add((job.results_name, trained_by(job, epochs_done - 1)), seconds / passed)
        if job.folder in self.starting:
            self.begun[job.folder] = max(self.begun[job.folder], now - seconds)
            self.starting.discard(job.folder)
        self.in_epochs[job.folder] += seconds
        self.last_news[job.folder] = now
        self.to_go[job.folder] = left

    def stopped(self, job: Job) -> None:
        self.begun.pop(job.folder, None)

    def finished(self, job: Job) -> None:
        if job.folder in self.begun.keys() - self.starting and not job.until:
            spent = time.monotonic() - self.begun[job.folder] - self.in_epochs[job.folder]
            self.outside.add((job.results_name, job.method), max(spent, 0.0))
        self.stopped(job)
        self.ended.add(job.folder)

    def seconds_left(self) -> float | None:
        """Return the seconds until all jobs are done and tables are written; None before the first epoch has ended."""
        if not self.epochs.means:
            return None
        left = [job for job in self.jobs if job.folder not in self.ended]
        left.sort(key=lambda job: job.folder not in self.begun)
        devices = [Device("worker")] * max(self.at_a_time, 1)
        return simulate(make_works(left, self.of_job, self.awaited_part), devices).makespan + self.tables

    def awaited_part(self, trunk: Job, job: Job) -> float | None:
        """Return the part of what is left of a trunk that a job waits for; None if the job has begun."""
        if job.folder in self.begun:
            return None
        to_go = self.to_go[trunk.folder]
        return max(job.warmup_epochs - trunk.last_epoch + to_go, 0.0) / max(to_go, 1e-9)

    def of_job(self, job: Job) -> float:
        """Return the seconds left of a job, as if it ran alone on a worker."""
        left = self.to_go[job.folder]
        if not left and job.folder in self.begun and job.folder in self.predicted_end:
            return max(self.predicted_end[job.folder] - time.monotonic(), 0.0)
        warmup = min(max(job.warmup_epochs - (job.last_epoch - left), 0.0), left)
        parts = {trained_by(job, 0): warmup, job.method: left - warmup} if warmup else {job.method: left}
        training = sum(count * (self.epochs.of((job.results_name, name)) or 0.0) for name, count in parts.items())
        outside = 0.0 if job.until else self.outside.of((job.results_name, job.method)) or 0.0
        if job.folder in self.begun:
            until = self.last_news[job.folder] if left else time.monotonic()
            outside -= max(until - self.begun[job.folder] - self.in_epochs[job.folder], 0.0)
        return training + max(outside, 0.0)


def trained_by(job: Job, epoch: int) -> str:
    """Return the method that trains an epoch: in a warm-up, that of the trunk."""
    return job.trunk.method if job.trunk and epoch < job.warmup_epochs else job.method
