"""A sign of life from within an epoch, and an ear for whoever wants to stop."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Report = Callable[[dict[str, Any]], object]
"""Called with the numbers a person wants to see; what it returns is true to stop there."""

BEAT_SECONDS = 2.0
"""Fast steps cost a look at the clock, and nothing is said more often than this."""


class Interrupted(Exception):
    """Asked to stop, a job has saved where it stands and goes no further."""


def silent(values: dict[str, Any]) -> None:
    """For whoever wants to hear of whole epochs alone."""


@dataclass
class Pulse:
    """Counts on the host, which the device does not wait for. Raises Interrupted where a person wants to stop."""

    report: Report
    can_stop: bool = True
    """Several ranks stop together, at the end of an epoch."""

    def __post_init__(self) -> None:
        self.between: Callable[[], object] | None = None
        self.told = self.begun = time.monotonic()
        self.epoch: int | None = None
        self.first = self.done = 0

    @contextmanager
    def doing(self, between: Callable[[], object]) -> Iterator[None]:
        """Within this, do something between two steps now and then.

        Forget it afterwards: it knows the training, which knows the pulse, and a circle would keep the device's memory.
        """
        self.between = between
        try:
            yield
        finally:
            self.between = None

    def __call__(self, done: int, of: int, epoch: int | None = None) -> None:
        """So many steps of an epoch are done; without one, so many batches of a split are predicted."""
        now = time.monotonic()
        if epoch != self.epoch or done <= self.done:
            self.begun, self.first = now, done  # the first step may translate and load, and tells nothing of the rest
        self.epoch, self.done = epoch, done
        if now - self.told < BEAT_SECONDS:
            return
        self.told = now
        rate = (done - self.first) / (now - self.begun) if done > self.first else 0.0
        asked = self.report({"epoch": epoch, "done": done, "of": of, "rate": rate})
        if not self.can_stop:
            return
        if asked:
            raise Interrupted
        if epoch is not None and self.between is not None:
            self.between()
