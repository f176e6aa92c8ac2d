"""What a person sees while a grid runs: one live line on a terminal, one plain line per finished job elsewhere."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tqdm import tqdm

from benchmark.jobs import Job
from benchmark.launch import Event, Stop


def describe_job(job: Job) -> str:
    return f"{job.task.name}/{job.method}/{job.id[:6]} seed {job.seed}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass
class Watcher:
    """Follows the events of a launch. The ETA weighs each remaining epoch by what its task's epochs have taken."""

    jobs: Sequence[Job]
    workers: int
    names: dict[str, str]
    """Job id → the label people know it by."""
    quiet: bool = False
    verbose: bool = False
    fail_fast: bool = False
    failures: list[tuple[Job, str]] = field(default_factory=list)
    finished: int = 0

    def __post_init__(self) -> None:
        self.live = sys.stderr.isatty() and not self.quiet
        self.bar = tqdm(
            total=len(self.jobs),
            disable=not self.live,
            unit="job",
            leave=False,
            dynamic_ncols=True,
            bar_format="{n_fmt}/{total_fmt} jobs |{bar}| {desc}",
        )
        self.started: dict[Job, float] = {}
        self.remaining = {id(job): job.task.epochs for job in self.jobs}
        self.spent: dict[str, tuple[float, int]] = {}
        self.by_folder = {job.folder: job for job in self.jobs}
        self.last_seen: dict[int, float] = {}

    def __call__(self, event: Event) -> None:
        job = self.by_folder[event.job.folder]
        if event.kind == "started":
            self.last_seen[id(job)] = time.monotonic()
        elif event.kind == "epoch":
            self.after_epoch(job, event)
        else:
            self.after_job(job, event)

    def after_epoch(self, job: Job, event: Event) -> None:
        now, done = time.monotonic(), int(event.values["epochs_done"])
        seconds, epochs = self.spent.get(job.task.name, (0.0, 0))
        advanced = max(1, self.remaining[id(job)] - (job.task.epochs - done))
        self.spent[job.task.name] = (seconds + now - self.last_seen[id(job)], epochs + advanced)
        self.last_seen[id(job)] = now
        self.remaining[id(job)] = job.task.epochs - done
        accuracy = f" accuracy {event.values['accuracy']:.1%}" if "accuracy" in event.values else ""
        line = f"{self.name(job)} epoch {done}/{job.task.epochs} loss {event.values['loss']:.3f}{accuracy}"
        self.bar.set_description_str(f"{line} | ETA {self.eta()}")
        if self.verbose and not self.live:
            print(line, flush=True)

    def after_job(self, job: Job, event: Event) -> None:
        self.finished += 1
        self.remaining[id(job)] = 0
        self.bar.update()
        if event.kind == "failed":
            self.failures.append((job, event.values["reason"]))
        if event.kind == "failed" or not (self.live or self.quiet):
            state = f"FAILED: {event.values['reason']}" if event.kind == "failed" else "done"
            eta = f", ETA {self.eta()}" if self.finished < len(self.jobs) else ""
            self.bar.write(f"[{self.finished}/{len(self.jobs)}] {self.name(job)}: {state}{eta}", file=sys.stderr)
        if event.kind == "failed" and self.fail_fast:
            raise Stop

    def eta(self) -> str:
        """Time until the last job ends, from the epochs seen so far."""
        total_seconds, total_epochs = (sum(x) for x in zip(*self.spent.values(), strict=True)) if self.spent else (0, 0)
        if not total_epochs:
            return "?"
        seconds = 0.0
        for job in self.jobs:
            spent, epochs = self.spent.get(job.task.name, (total_seconds, total_epochs))
            seconds += self.remaining[id(job)] * spent / epochs
        return duration(seconds / self.workers)

    def name(self, job: Job) -> str:
        return f"{job.task.name} {self.names.get(job.id, job.method)} seed {job.seed}"

    def close(self) -> None:
        self.bar.close()
