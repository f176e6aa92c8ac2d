"""What a job costs beside its training: `python -m tests.speed.small_jobs`.

The first table has the parts of a job on `digits-vectors`, in one process: each in time by the clock and of the
processor, without the parts within it. The second has a whole run of such jobs on two workers, with its tables, and
what a worker holds in memory after the first hundred and near the end.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import torch
from tabulate import tabulate

from benchmark.base.units import counted
from benchmark.config.load import load_task
from benchmark.data.dataset import prepare
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.launch.queue import Event
from benchmark.launch.supervise import run_watched
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.run_job import prepare_device
from benchmark.train.steps.optimizers import OPTIMIZERS
from benchmark.train.trainer import Trainer
from methods import Registry
from tests.conftest import NOWHERE, ROOT, data_hash
from tests.speed.steps import bare_epoch
from tests.speed.timing import CPU, Row, missed, seconds

TASK = "digits-vectors"
LABELS = ("SR", "Label smoothing", "Focal", "Adaptive Focal", "LogitNorm", "Soft ECE", "Soft AvUC", "AURC loss", "CRL",
          "MMCE")  # fmt: skip
WARM_UP = 5
REGISTRY = Registry()
TRAINING, REST = "training", "all else: lock, reports of epochs, tidying up"
FINISH, PREDICT, RUN = (f"benchmark.train.{name}" for name in ("outcome.finish", "outcome.predict", "run_job"))
PARTS = {
    TRAINING: [f"{RUN}.Trainer.run_epoch"],
    "predicting": [f"{PREDICT}.Trainer.predict", f"{PREDICT}.last_layer"],
    "measures": [f"{PREDICT}.measure", f"{PREDICT}.made_by_now"],
    "network, optimiser, method": [f"{RUN}.Trainer.start"],
    "splits of the images": [f"{FINISH}.load_data"],
    "record": ["benchmark.store.store.Store.write_record"],
    "predictions, last layer, learning curve": [
        f"benchmark.store.store.Store.{name}" for name in ("write_prediction", "write_classifier", "write_history")
    ],
    "waiting for the disk": ["os.fsync", "benchmark.store.store.make_lasting"],
    "provenance": [f"{RUN}.provenance", "benchmark.train.accounting.environment"],
}
"""Functions that belong to each part of a job."""


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


@dataclass
class Parts:
    """Adds up what each part of a job takes: a part within another counts for itself alone."""

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    running: list[str] = field(default_factory=list)
    since: tuple[float, float] = field(default_factory=clocks)

    def pass_on(self) -> None:
        """Count the time since the last change for what is running."""
        now = clocks()
        if self.running:
            for index in (0, 1):
                self.took[self.running[-1]][index] += now[index] - self.since[index]
        self.since = now

    @contextmanager
    def counting(self, part: str) -> Iterator[None]:
        self.pass_on()
        self.running.append(part)
        try:
            yield
        finally:
            self.pass_on()
            self.running.pop()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*arguments, **named)  # the main thread waits for it, and counts that
            with self.counting(part):
                return function(*arguments, **named)

        return work


def found(name: str) -> Any:
    """What a dotted name stands for in modules that are imported."""
    owner, _, attribute = name.rpartition(".")
    return getattr(sys.modules.get(owner) or found(owner), attribute)


def measured_job(job: Job, context: Context) -> dict[str, list[float]]:
    """Run a job, and return what its parts took, by the clock and of the processor."""
    parts, ends = Parts(), []

    def watch(event: Event) -> None:
        ends.append(event.kind)

    with ExitStack() as stack:
        for part, names in PARTS.items():
            for name in names:
                stack.enter_context(patch(name, parts.timed(part, found(name))))
        with parts.counting(REST):
            run_watched(job, context, "cpu", watch, lambda: False)
    if ends[-1] != "done":
        raise RuntimeError(f"{job.name}: {ends[-1]}")
    return parts.took


def bare_seconds(job: Job) -> float:
    """The epochs of a job as one would write them by hand, with batches that are there already."""
    task = job.task
    prepare_device(task, CPU)
    trainer = Trainer(job, REGISTRY, prepare(task.data, NOWHERE, job.seed, CPU, 10**9), CPU)
    state = trainer.start()
    batches = tuple(trainer.batches(state.method, 0))
    optimizer = OPTIMIZERS[task.optimizer.name](list(state.method.parameters()), task.optimizer)

    def epochs() -> None:
        for _ in range(task.epochs):
            bare_epoch(state, batches, optimizer)

    return seconds(epochs)


def part_rows(count: int) -> tuple[list[Row], list[Row]]:
    """The parts of a job, and what is compared with a bar."""
    task = load_task(TASK)
    jobs = plan(task, ["SR"], range(WARM_UP + count), REGISTRY, data_hash(task))[0].jobs
    took, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        context = Context(Path(folder), NOWHERE, REGISTRY)
        for job in jobs:
            took.append(measured_job(job, context))
            bare.append(bare_seconds(job))
        assert all(Store(Path(folder)).has_record(job.folder) for job in jobs)
    took, bare = took[WARM_UP:], bare[WARM_UP:]

    def middle(part: str, clock: int) -> float:
        return 1000 * statistics.median(each[part][clock] for each in took)

    ordered = sorted((*PARTS, REST), key=lambda part: (part != TRAINING, -middle(part, 1)))
    parts = [[part, f"{middle(part, 0):.1f}", f"{middle(part, 1):.1f}"] for part in ordered]
    beside = [
        1000 * statistics.median(sum(each[part][clock] for part in (*PARTS, REST) if part != TRAINING) for each in took)
        for clock in (0, 1)
    ]
    ratio = statistics.median(each[TRAINING][0] / alone for each, alone in zip(took, bare, strict=True))
    remark = f"median of {count} jobs of SR; {beside[1]:.1f} ms of the processor"
    return parts, [
        ["a job, all but its training, in ms", f"{beside[0]:.1f}", "≤ 60", remark],
        ["its training ÷ the same epochs in a bare loop", f"{ratio:.2f}", "", f"{task.epochs} epochs of 12 steps"],
    ]


def private_memory(process: psutil.Process) -> float:
    """Memory of a process that no other one shares, in MB."""
    return float(process.memory_full_info().uss) / 1e6


def run_rows(count: int, epochs: int) -> list[Row]:
    """A run of many jobs on two workers, from the command to its tables."""
    seeds, early, late = count // len(LABELS), min(100, count // 4), count - 10
    with tempfile.TemporaryDirectory() as folder:
        words = ["--datasets", TASK, "--methods", *LABELS, "--seeds", str(seeds), "--workers", "2"]
        words += ["--set", f"epochs={epochs}"] if epochs else []
        command = [sys.executable, str(ROOT / "run_all.py"), *words, "--results", folder]
        begun, used = time.perf_counter(), os.times()
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        marks, memory, told = {}, {}, []
        assert run.stderr is not None
        for line in run.stderr:
            told.append(line)
            number = int(line[1:].partition("/")[0]) if line.startswith("[") else 0
            if number in (1, count):
                marks[number] = time.perf_counter() - begun
            if number in (early, late):
                processes = psutil.Process(run.pid).children()
                memory[number] = [size for each in processes if (size := private_memory(each)) > 100]
        if run.wait():
            raise RuntimeError("".join(told[-20:]))
        whole, now = time.perf_counter() - begun, os.times()
    processor = now.children_user + now.children_system - used.children_user - used.children_system
    start, jobs = marks[1], marks[count] - marks[1]
    spent = f"start {start:.0f} s, jobs {jobs:.0f} s, tables {whole - marks[count]:.0f} s"
    name, bar = f"{count:,} jobs of {counted(epochs or load_task(TASK).epochs, 'epoch')}", f"≤ {180 * count // 1000}"
    grown = max(after - before for before, after in zip(memory[early], memory[late], strict=True))
    held = f"{max(memory[early]):.0f} MB after {early} jobs, {max(memory[late]):.0f} MB after {late}"
    return [
        [f"{name} on two workers, with their tables, in s", f"{whole:.0f}", bar, spent],
        ["the same, processor time of each of two cores", f"{processor / 2:.0f}", bar, "what others do counts less"],
        ["memory that a worker gains meanwhile, in MB", f"{grown:.1f}", "≤ 10", held],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="jobs whose parts are measured")
    parser.add_argument("--epochs", type=int, default=0, help="epochs of a job in the whole run (default: the task's)")
    parser.add_argument("--jobs", type=int, default=1000, help="jobs of the whole run")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    parts, rows = part_rows(arguments.rounds)
    print(tabulate(parts, [f"part of a job on {TASK}", "ms", "ms of the processor"], tablefmt="pipe"), "\n", flush=True)
    rows += run_rows(arguments.jobs, arguments.epochs)
    print(tabulate(rows, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, rows)))


if __name__ == "__main__":
    main()
