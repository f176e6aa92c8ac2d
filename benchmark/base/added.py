"""Hold what users' own files add to the suite: scores, networks and sources of images, each by its name.

The tables are filled by the collection of methods: where it is made, and again in every process that it is sent to.
They belong to a process because names are looked up far from any collection, e.g. where a network is built.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Added(Generic[T]):
    """A score, a network or a source of a user's own file."""

    value: T
    title: str
    version: str
    """Hash of what the file does."""
    file: Path

    @property
    def owner(self) -> str:
        """Return the name under which the collection of methods knows the file."""
        return self.file.stem


SCORES: dict[str, Added[Any]] = {}
NETWORKS: dict[str, Added[Any]] = {}
SOURCES: dict[str, Added[Any]] = {}
SCORES_OF_METHODS: dict[str, Any] = {}
"""By the name of a method's file: the function of its scores, and the hash of what the file does."""
HOW = "one of your own comes with --plugin FILE.py"


def clear() -> None:
    """Forget what was added: a command that names no file has nothing of those before it in its process."""
    for table in (SCORES, NETWORKS, SOURCES, SCORES_OF_METHODS):
        table.clear()
