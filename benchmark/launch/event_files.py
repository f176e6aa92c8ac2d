"""Write learning curves for TensorBoard: event files in the folder `tensorboard` of the results, one folder per job.

They change no result. When a job is done, its event file has the rows of its history.csv: also those of a shared
warm-up, and of a command that was killed.
"""

import importlib.util
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.jobs.job import Job
from benchmark.launch.queue import ENDS, Event
from benchmark.live.journal import row_of
from benchmark.store.curves import rows_of
from benchmark.store.store import HISTORY, Store

FOLDER = "tensorboard"
FILES = "events.out.tfevents.*"


def check_tensorboard() -> None:
    """Raise UserError before any training if event files cannot be written."""
    if importlib.util.find_spec("tensorboard") is None:
        raise UserError("--tensorboard needs another package: pip install tensorboard; or leave out --tensorboard")


def place_of(job: Job) -> Path:
    """Return the folder of a job's event files, below the results. TensorBoard shows its parts as the run's name."""
    label = re.sub(r"[^\w.+@-]+", "-", job.label)
    return Path(FOLDER, job.results_name, label, job.id, job.folder.name)


class Curve:
    """The event file of one job, as this command writes it."""

    def __init__(self, folder: Path, first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # it takes a second to import

        self.folder, self.rows = folder, 0
        self.writer: Any = SummaryWriter(str(folder), purge_step=first)

    def add(self, row: Mapping[str, float]) -> None:
        """Add what is known after an epoch. Steps count finished epochs."""
        for name, value in row.items():
            if name != "epoch":
                self.writer.add_scalar(name, value, round(row["epoch"]) + 1)
        self.writer.flush()
        self.rows += 1

    def close(self) -> None:
        self.writer.close()


class EventFiles:
    """Writes the curves of all jobs of a command. What the disk refuses costs the event files alone."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.curves: dict[Path, Curve] = {}
        self.refused = False

    def note(self, event: Event) -> None:
        """Write what an event says of a learning curve."""
        if self.refused:
            return
        try:
            if event.kind == "epoch":
                self.add(event.job, row_of(event.values))
            elif event.kind in ENDS:
                self.finish(event.job)
            elif event.kind in ("stopped", "retried"):
                self.leave(event.job)
        except OSError as error:
            self.refused = True
            say(f"no more event files for TensorBoard: {error.strerror or error}; the run goes on")

    def add(self, job: Job, row: Mapping[str, float]) -> None:
        if job.folder not in self.curves:
            self.curves[job.folder] = Curve(self.store.root / place_of(job), round(row["epoch"]) + 1)
        self.curves[job.folder].add(row)

    def finish(self, job: Job) -> None:
        """Close the file of a job that has ended. One that lacks rows of its history is written again."""
        written = self.leave(job)
        rows = rows_of((self.store.read_checked(job.folder, HISTORY, None) or b"").decode())
        if len(rows) <= written:
            return
        folder = self.store.root / place_of(job)
        for path in folder.glob(FILES):
            path.unlink()
        whole = Curve(folder, 0)
        for row in rows:
            whole.add(row)
        whole.close()

    def leave(self, job: Job) -> int:
        """Close the file of a job, and return how many rows this command has written."""
        curve = self.curves.pop(job.folder, None)
        if curve is None:
            return 0
        curve.close()
        return curve.rows

    def close(self) -> None:
        """Close the files of jobs that have not ended."""
        for curve in self.curves.values():
            with suppress(OSError):
                curve.close()
