"""What a person sees while a grid runs: one live line on a terminal, one plain line per finished job elsewhere."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from benchmark.jobs import Job
from benchmark.launch import Event, Stop


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass
class Pace:
    """Epochs to go, and what an epoch of each task has taken so far."""

    jobs: Sequence[Job]

    def __post_init__(self) -> None:
        self.running: set[Path] = set()
        self.at_a_time = 1
        self.to_go = {job.folder: job.epochs for job in self.jobs}
        self.last_seen = dict.fromkeys(self.to_go, 0.0)
        self.seconds = {job.task.name: 0.0 for job in self.jobs}
        self.epochs = {job.task.name: 0 for job in self.jobs}

    def started(self, job: Job) -> None:
        self.running.add(job.folder)
        self.at_a_time = max(self.at_a_time, len(self.running))
        self.last_seen[job.folder] = time.monotonic()

    def epoch(self, job: Job, epochs_done: int) -> None:
        now, left = time.monotonic(), job.last_epoch - epochs_done
        self.seconds[job.task.name] += now - self.last_seen[job.folder]
        # A trial of a few steps leaps over epochs; a resumed job begins in the middle, but trains one at a time.
        self.epochs[job.task.name] += self.to_go[job.folder] - left if job.max_steps else 1
        self.last_seen[job.folder] = now
        self.to_go[job.folder] = left

    def stopped(self, job: Job) -> None:
        self.running.discard(job.folder)

    def finished(self, job: Job) -> None:
        self.stopped(job)
        self.to_go[job.folder] = 0

    def eta(self) -> str:
        """Until the last job ends; a task not seen yet counts at the mean of the others."""
        seen = sum(self.epochs.values())
        if not seen:
            return "not known yet"
        typical = sum(self.seconds.values()) / seen
        each = {name: self.seconds[name] / count if count else typical for name, count in self.epochs.items()}
        return duration(sum(self.to_go[job.folder] * each[job.task.name] for job in self.jobs) / self.at_a_time)


@dataclass
class Watcher:
    """Follows the events of a launch and tells a person."""

    jobs: Sequence[Job]
    quiet: bool = False
    verbose: bool = False
    fail_fast: bool = False
    failures: list[tuple[Job, str]] = field(default_factory=list)
    finished: int = 0
    shared: bool = False

    def __post_init__(self) -> None:
        self.pace = Pace(self.jobs)
        self.live = sys.stderr.isatty() and not self.quiet
        layout = f"{{n_fmt}}/{{total_fmt}} {'job' if len(self.jobs) == 1 else 'jobs'} |{{bar:8}}| {{desc}}"
        self.bar = tqdm(total=len(self.jobs), disable=not self.live, leave=False, dynamic_ncols=True, bar_format=layout)

    def __call__(self, event: Event) -> None:
        if event.kind == "started":
            self.pace.started(event.job)
        elif event.kind == "epoch":
            self.after_epoch(event)
        elif event.kind == "stopped":
            self.pace.stopped(event.job)
        elif event.kind == "busy":
            self.beside_another()
        elif event.kind == "retried":
            self.pace.stopped(event.job)
            self.bar.write(f"{event.job.name}: {event.values['reason']}; trying again", file=sys.stderr)
        else:
            self.after_job(event)

    def after_epoch(self, event: Event) -> None:
        job, done = event.job, int(event.values["epochs_done"])
        self.pace.epoch(job, done)
        accuracy = f" acc {event.values['accuracy']:.1%}" if "accuracy" in event.values else ""
        line = f"{job.name} epoch {done}/{job.last_epoch} loss {event.values['loss']:.3f}{accuracy}"
        self.bar.set_description_str(f"ETA {self.pace.eta()} | {line}")
        if self.verbose:
            self.bar.write(line, file=sys.stderr)

    def after_job(self, event: Event) -> None:
        self.finished += 1
        self.pace.finished(event.job)
        self.bar.update()
        failed = event.kind != "done"
        if failed:
            self.failures.append((event.job, event.values["reason"]))
        if failed or not (self.live or self.quiet):
            state = {"done": "done", "failed": "FAILED: "}.get(event.kind, "") + event.values.get("reason", "")
            eta = f", ETA {self.pace.eta()}" if self.finished < len(self.jobs) else ""
            self.bar.write(f"[{self.finished}/{len(self.jobs)}] {event.job.name}: {state}{eta}", file=sys.stderr)
        if failed and self.fail_fast:
            raise Stop

    def beside_another(self) -> None:
        """Said once, however many jobs it holds."""
        if not self.shared and not self.quiet:
            self.bar.write("another process works on some of these jobs; waiting for what it does", file=sys.stderr)
        self.shared = True

    def stopping(self) -> None:
        self.bar.write("stopping when this epoch is done and saved; Ctrl-C again stops at once", file=sys.stderr)

    def close(self) -> None:
        self.bar.close()
