"""Work done ahead of its use, by a thread or by processes, with the results in order."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(executor: Executor, work: Callable[[Item], Result], items: Iterable[Item], depth: int) -> Iterator[Result]:
    """`work` of each item in turn, at most `depth` finished or under way beyond the one in use."""
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


def processes() -> ProcessPoolExecutor:
    """One for each core. They end with their parent, however that ends."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(os.cpu_count() or 1, mp_context=spawn, initializer=live_with_parent)


def live_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
