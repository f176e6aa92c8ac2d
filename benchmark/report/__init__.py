"""Write one self-contained page for a results folder: tables, curves, comparisons, health, cost and provenance."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.base.files import write_if_changed
from benchmark.report.page import build_page
from benchmark.report.parts import Part

NAME = "report.html"


def write_report(parts: Sequence[Part], folder: Path) -> Path:
    """Write the page and return its path. Equal records give equal bytes."""
    path = folder / NAME
    write_if_changed(path, build_page(parts).encode())
    return path
