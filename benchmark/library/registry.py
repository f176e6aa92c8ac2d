"""Bring in the methods: the only place where the core reaches for them, as whoever calls the library need not."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.jobs.job import Methods


def load_methods(plugins: Sequence[Path] = ()) -> Methods:
    """Return the methods of the suite and of a user's own files, which are executed when a method of theirs is used."""
    from methods import Registry

    return Registry(tuple(path.resolve() for path in plugins))
