"""Show a person how a run goes on: one live line on a terminal or in a notebook, a plain line per job elsewhere."""

import importlib
import importlib.util
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from benchmark.base.units import DAY, text_from_seconds
from benchmark.jobs.job import Job
from benchmark.launch.eta import Eta
from benchmark.launch.queue import Event, Stop

SILENCE_SECONDS, SILENCE_SHARE = 10.0, 0.01
"""Where there is no live line, a plain one is printed after this silence, or this share of a long run so far."""
REDRAW_SECONDS = 0.1
"""A notebook is sent every drawing, however fast they follow each other."""
COST_SHARE = 0.02
"""The share of the time that may be spent on the estimate."""


def duration(seconds: float) -> str:
    """Return a time as `1:05`, `1:00:05` or `3.5 days`."""
    if seconds >= 2 * DAY:
        return text_from_seconds(seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook, which redraws a line although it is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "IPKernelApp" in shell.config


def make_bar(jobs: int, *, live: bool) -> Any:
    """Return a bar of tqdm's: a line, or in a notebook a widget, which stays when all is done."""
    stays = in_notebook()
    widget = stays and importlib.util.find_spec("ipywidgets") is not None
    kind = importlib.import_module("tqdm.notebook").tqdm if widget else tqdm
    layout = f"{{n_fmt}}/{{total_fmt}} {'job' if jobs == 1 else 'jobs'} |{{bar{'' if widget else ':8'}}}| {{desc}}"
    return kind(total=jobs, disable=not live, leave=stays, dynamic_ncols=True, bar_format=layout)


@dataclass
class Watcher:
    """Follows the events of a run and shows them to a person."""

    jobs: Sequence[Job]
    quiet: bool = False
    verbose: bool = False
    fail_fast: bool = False
    workers: int = 1
    """Jobs at a time, as far as that is known."""
    tables: bool = False
    """Whether tables and report follow."""
    failures: list[tuple[Job, str]] = field(default_factory=list)
    finished: int = 0
    shared: bool = False
    """Whether another process works on some of the jobs."""

    def __post_init__(self) -> None:
        self.estimate = Eta(self.jobs, self.workers, tables=self.tables)
        self.began = self.spoke = time.monotonic()
        self.end: float | None = None
        self.look_again = self.began
        self.drawn = -REDRAW_SECONDS
        self.live = (sys.stderr.isatty() or in_notebook()) and not self.quiet
        self.bar = make_bar(len(self.jobs), live=self.live)

    def __call__(self, event: Event) -> None:
        if event.kind == "started":
            self.estimate.started(event.job)
            self.show(f"{event.job.name}: begun")
        elif event.kind == "step":
            self.within_epoch(event)
        elif event.kind == "epoch":
            self.after_epoch(event)
        elif event.kind == "busy":
            if not (self.shared or self.quiet):
                self.say("another process works on some of these jobs; waiting for what it does")
            self.shared = True
        elif event.kind in ("stopped", "retried"):
            self.estimate.stopped(event.job)
            if event.kind == "retried":
                self.say(f"{event.job.name}: {event.values['reason']}; trying again")
        else:
            self.after_job(event)

    def say(self, line: str) -> None:
        self.bar.write(line, file=sys.stderr)
        self.spoke = time.monotonic()

    def show(self, line: str) -> None:
        due = time.monotonic() - self.drawn >= REDRAW_SECONDS
        self.drawn = time.monotonic() if due else self.drawn
        self.bar.set_description_str(" | ".join(filter(None, [self.eta(), line])), refresh=due)

    def seconds_left(self) -> float | None:
        """Return the time left. It is computed at most once a second: many jobs take long to simulate."""
        now = time.monotonic()
        if now >= self.look_again or self.end is None:
            started = time.perf_counter()
            left = self.estimate.seconds_left()
            self.end = None if left is None else now + left
            self.look_again = now + max(1.0, (time.perf_counter() - started) / COST_SHARE)
        return None if self.end is None else max(self.end - now, 0.0)

    def eta(self) -> str:
        left = self.seconds_left()
        return "" if left is None else f"ETA {duration(left)}"

    def within_epoch(self, event: Event) -> None:
        job, values = event.job, event.values
        done, of, rate = values["done"], values["of"], values["rate"]
        if values["epoch"] is not None:
            self.estimate.within(job, values["epoch"], done / of, of / rate if rate else None)
        elif rate:
            self.estimate.predicting(job, (of - done) / rate, of)
        line = step_line(job, **values)
        self.show(line)
        now = time.monotonic()
        silence = max(SILENCE_SECONDS, SILENCE_SHARE * (now - self.began))
        if not (self.live or self.quiet) and now - self.spoke >= silence:
            self.say(", ".join(filter(None, [line, self.eta()])))

    def after_epoch(self, event: Event) -> None:
        job, done = event.job, int(event.values["epochs_done"])
        self.estimate.epoch(job, done, event.values.get("seconds"))
        accuracy = f" acc {event.values['accuracy']:.1%}" if "accuracy" in event.values else ""
        line = f"{job.name} epoch {done}/{job.last_epoch} loss {event.values['loss']:.3f}{accuracy}"
        self.show(line)
        if self.verbose:
            self.say(line)

    def after_job(self, event: Event) -> None:
        self.finished += 1
        self.estimate.finished(event.job)
        self.bar.update()
        failed = event.kind != "done"
        if failed:
            self.failures.append((event.job, event.values["reason"]))
        if failed or not (self.live or self.quiet):
            state = {"done": "done", "failed": "FAILED: "}.get(event.kind, "") + event.values.get("reason", "")
            eta = self.eta() if self.finished < len(self.jobs) else ""
            text = ", ".join(filter(None, [state, eta]))
            self.say(f"[{self.finished}/{len(self.jobs)}] {event.job.name}: {text}")
        if failed and self.fail_fast:
            raise Stop

    def stopping(self) -> None:
        self.say("stopping as soon as each job has saved its state; press Ctrl-C again to stop at once")

    def close(self) -> None:
        if self.finished == len(self.jobs):
            self.bar.set_description_str("", refresh=False)
        self.bar.close()


def step_line(job: Job, epoch: int | None, done: int, of: int, rate: float) -> str:
    """Return a line that says where a job stands within an epoch, or in a split that it predicts."""
    within = "predicting, batch" if epoch is None else f"epoch {epoch + 1}/{job.last_epoch} step"
    place = f"{job.name} {within} {done}/{of}"
    if not rate:
        return place
    pace = f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"
    return f"{place}, {pace}, {duration((of - done) / rate)} left in this {'split' if epoch is None else 'epoch'}"
