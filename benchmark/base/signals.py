"""Signals: who answers Ctrl-C, how patiently, and what SIGTERM means."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

EXIT_INTERRUPTED, EXIT_TERMINATED, EXIT_BROKEN_PIPE = (128 + number for number in (signal.SIGINT, signal.SIGTERM, 13))


class Terminated(BaseException):
    """SIGTERM: leave at once, but in order. No Exception, so that nothing takes it for a failed job."""


@contextmanager
def handled(number: int, handler: Any) -> Iterator[None]:
    """Only the main thread may say how a signal is handled; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def ignored_interrupts() -> Any:
    """Processes started meanwhile inherit it: Ctrl-C is their parent's to handle."""
    return handled(signal.SIGINT, signal.SIG_IGN)


def raised_termination() -> Any:
    def leave(number: int, frame: FrameType | None) -> None:
        raise Terminated

    return handled(signal.SIGTERM, leave)


@contextmanager
def patient_interrupts(tell: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks for an end, which what is given here then says; the second is a KeyboardInterrupt."""
    asked = threading.Event()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        tell()

    with handled(signal.SIGINT, on_interrupt):
        yield asked.is_set
