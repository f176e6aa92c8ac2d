"""Define what can be asked of a whole results folder: a small copy of it, and one table of several tasks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmark.library.options import Options


@dataclass(frozen=True, kw_only=True)
class PackOptions(Options):
    """A results folder, and the folder of its small copy."""

    results: str
    to: str


@dataclass(frozen=True, kw_only=True)
class SummaryOptions(Options):
    """Which tasks and methods stand in one table, and what of them."""

    results: str = "results"
    tasks: tuple[str, ...] | None = None
    """Columns in this order, each a name or NAME=TITLE; None: all that are no evaluation sets."""
    methods: tuple[str, ...] | None = None
    ingredients: tuple[str, ...] = ()
    """Show the methods as they are with these, by name."""
    rows: tuple[str, ...] | None = None
    """Show only these rows, in this order."""
    scores: tuple[str, ...] | None = None
    measure: str = "aurc"
    test: Literal["exact", "paired"] = "exact"
    name: str = "summary"
    """Of its files."""
    short: bool = False
    """A narrow table with few words, for a page that explains it."""
    plugin: tuple[Path, ...] = ()
    out: Path | None = None
