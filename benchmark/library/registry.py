"""Bring in the methods: the only place where the core reaches for them, as whoever calls the library need not."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.base import added
from benchmark.jobs.job import Methods


def load_methods(plugins: Sequence[Path] = ()) -> Methods:
    """Return the methods of the suite and of users' own files, which are executed. What else these add is now known."""
    from methods import Registry

    return Registry(tuple(path.resolve() for path in plugins))


def load_plugins(plugins: Sequence[Path]) -> None:
    """Make known what users' own files add, and forget what others did. Without a file this needs no torch."""
    if plugins:
        load_methods(plugins)
    else:
        added.clear()
