"""One self-contained page for a results folder: tables, curves, comparisons, health, cost and provenance."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.assemble import Assembled
from benchmark.files import write_atomically
from benchmark.report.page import build_page
from benchmark.store import Store

NAME = "report.html"


def write_report(tasks: Sequence[Assembled], published: Sequence[Assembled], store: Store) -> Path:
    """Equal records make equal bytes."""
    path = store.root / NAME
    write_atomically(path, build_page(tasks, published, store).encode())
    return path
