"""Do work before its result is needed, in a thread or in processes, and give the results in order."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import TypeVar

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


def processes() -> ProcessPoolExecutor:
    """Start a process for each core. They end with their parent, however that ends."""
    pool = ProcessPoolExecutor(cores(), mp_context=multiprocessing.get_context("spawn"), initializer=watch_parent)
    with ignored_interrupts():
        pool.submit(int).result()  # the first task starts them all
    return pool


def watch_parent() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
