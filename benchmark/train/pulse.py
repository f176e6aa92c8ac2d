"""Report progress within an epoch, and stop where a person wants to."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Report = Callable[[dict[str, Any]], object]
"""Called with the numbers a person wants to see; it returns true to stop the job."""

BEAT_SECONDS = 2.0
"""Seconds between reports. A step in between costs only a look at the clock."""


class Interrupted(Exception):
    """Raised where a job is to stop; it has saved its state."""


def silent(values: dict[str, Any]) -> None:
    """Report nothing within epochs."""


@dataclass
class Pulse:
    """Counts steps on the host, so that the device never waits. Raises Interrupted where a person wants to stop."""

    report: Report = silent
    can_stop: bool = True
    """False for several ranks: they stop together, at the end of an epoch."""

    def __post_init__(self) -> None:
        self.between: Callable[[], object] | None = None
        self.reported = self.begun = time.monotonic()
        self.epoch: int | None = None
        self.first = self.done = 0

    @contextmanager
    def doing(self, between: Callable[[], object]) -> Iterator[None]:
        """Call `between` now and then between two steps.

        Forget it afterwards: it refers to the training, which refers to the pulse, and a cycle keeps device memory.
        """
        self.between = between
        try:
            yield
        finally:
            self.between = None

    def __call__(self, done: int, of: int, epoch: int | None = None) -> None:
        """Note that `done` steps of an epoch are done, or without an epoch, that `done` batches are predicted."""
        now = time.monotonic()
        if epoch != self.epoch or done <= self.done:
            self.begun, self.first = now, done  # the first step may compile and load, and says nothing of the rest
        self.epoch, self.done = epoch, done
        if now - self.reported < BEAT_SECONDS:
            return
        self.reported = now
        rate = (done - self.first) / (now - self.begun) if done > self.first else 0.0
        must_stop = self.report({"epoch": epoch, "done": done, "of": of, "rate": rate})
        if self.can_stop and must_stop:
            raise Interrupted
        if self.can_stop and epoch is not None and self.between is not None:
            self.between()
