"""One self-contained page for a results folder: tables, curves, comparisons, health, cost and provenance."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.files import write_if_other
from benchmark.report.page import build_page
from benchmark.report.parts import Part

NAME = "report.html"


def write_report(parts: Sequence[Part], folder: Path) -> Path:
    """Equal records make equal bytes."""
    path = folder / NAME
    write_if_other(path, build_page(parts).encode())
    return path
