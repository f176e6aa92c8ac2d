"""Keep child processes from running the user's script again, and modules of the current folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from types import ModuleType

SAFE_PATH, MAIN = "PYTHONSAFEPATH", "__main__"
ONE_AT_A_TIME = RLock()
"""Two threads that start processes at once would hide the main module for good."""


@contextmanager
def safe_path() -> Iterator[None]:
    """Let Python processes that are started in the block take no module from the current folder."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH, None)
        if before is not None:
            os.environ[SAFE_PATH] = before


@contextmanager
def without_script() -> Iterator[None]:
    """Let processes that are spawned in the block not run the main module again, as they would: it may be a script.

    They need nothing of it. A script that trains without asking whether it is the main module would start itself again.
    """
    with ONE_AT_A_TIME:
        main = sys.modules[MAIN]
        sys.modules[MAIN] = ModuleType(MAIN)
        try:
            yield
        finally:
            sys.modules[MAIN] = main
