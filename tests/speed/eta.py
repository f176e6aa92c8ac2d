"""When things happen in a real run, for the test of the ETA: `python -m tests.speed.eta` records it again."""

import csv
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmark.cli import main
from benchmark.launch.progress import Watcher
from benchmark.launch.queue import Event

LOG = Path(__file__).resolve().parent.parent / "expected" / "eta.csv"
TASK, LABELS, SETTINGS = "gaussians", ("SR", "SAT", "CCL-SC", "DG", "MC-dropout"), ("epochs=20",)
SEEDS, WORKERS = 2, 2
FIELDS = ("at", "kind", "job", "values")
VALUES = ("epochs_done", "seconds", "epoch", "done", "of", "rate", "loss")
"""Of an event, what the ETA is made of."""


def record() -> list[tuple[float, str, str, str]]:
    """Every event of the run with its time, and its end."""
    rows, started = [], time.monotonic()
    follow = Watcher.__call__

    def listen(watcher: Watcher, event: Event) -> None:
        told = {name: event.values[name] for name in VALUES if name in event.values}
        values = {name: round(value, 3) if isinstance(value, float) else value for name, value in told.items()}
        if event.kind != "step" or values["epoch"] is None:  # the others are many, and the epoch tells the same
            rows.append((round(time.monotonic() - started, 2), event.kind, event.job.name, json.dumps(values)))
        follow(watcher, event)

    Watcher.__call__ = listen  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        words = ["--datasets", TASK, "--methods", *LABELS, "--seeds", str(SEEDS), "--workers", str(WORKERS)]
        words += [word for setting in SETTINGS for word in ("--set", setting)]
        if main([*words, "--results", folder]):
            sys.exit("the run failed")
    return [*rows, (round(time.monotonic() - started, 2), "end", "", "{}")]


if __name__ == "__main__":
    with LOG.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(record())
    print(f"wrote {LOG}")
