"""Signals: which process handles Ctrl-C, when it stops, and what SIGTERM does."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

EXIT_INTERRUPTED, EXIT_TERMINATED, EXIT_BROKEN_PIPE = (128 + number for number in (signal.SIGINT, signal.SIGTERM, 13))


class Terminated(BaseException):
    """SIGTERM arrived: stop at once, but clean up. No Exception, so that nothing takes it for a failed job."""


@contextmanager
def handled(number: int, handler: Any) -> Iterator[None]:
    """Set the handler of a signal for a block. Only the main thread may do so; in others nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL if before is None else before)  # None: it was not set by Python


def ignored_interrupts() -> Any:
    """Ignore Ctrl-C in a block. Processes started in it inherit that: their parent handles Ctrl-C."""
    return handled(signal.SIGINT, signal.SIG_IGN)


def raised_termination() -> Any:
    """Raise Terminated in a block when SIGTERM arrives."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise Terminated

    return handled(signal.SIGTERM, leave)


@contextmanager
def patient_interrupts(on_first: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether Ctrl-C was pressed once; the second press raises a KeyboardInterrupt."""
    pressed = threading.Event()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()
        on_first()

    with handled(signal.SIGINT, on_interrupt):
        yield pressed.is_set
