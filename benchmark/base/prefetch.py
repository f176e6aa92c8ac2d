"""Do work before its result is needed, in a thread or in processes, and give the results in order."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

from benchmark.base.children import without_script
from benchmark.base.signals import ignored_interrupts

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], depth: int) -> Iterator[Result]:
    """Yield `work(item)` for each item in order; at most `depth` more are finished or under way."""
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(executor.submit(work, item))
            if len(pending) > depth:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes(ProcessPoolExecutor):
    """Processes that do not run the user's script again. They are started as there are tasks for them."""

    def submit(self, work: Callable[..., Result], /, *args: Any, **kwargs: Any) -> "Future[Result]":
        with without_script():
            return super().submit(work, *args, **kwargs)


def processes() -> ProcessPoolExecutor:
    """Start a process for each core. Ctrl-C does not reach them. They end with their parent, however that ends."""
    pool = Processes(cores(), mp_context=multiprocessing.get_context("spawn"), initializer=begin)
    with ignored_interrupts():
        for first in [pool.submit(int) for _ in range(cores())]:
            first.result()
    return pool


def begin() -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_parent()


def watch_parent() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
