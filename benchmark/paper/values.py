"""The figures that the paper prints, as data (configs/published/)."""

import csv
from dataclasses import dataclass
from functools import lru_cache

from benchmark.tasks import CONFIG_DIR

FOLDER = CONFIG_DIR / "published"


@dataclass(frozen=True)
class PublishedCell:
    mean: float
    std: float
    marker: str
    """How the reference is said to fare against this cell: better, worse, or empty."""
    bold: bool
    underlined: bool


@dataclass(frozen=True)
class Figures:
    """One published table."""

    name: str
    dataset: str
    cells: dict[tuple[int, str], PublishedCell]
    """By coverage and column."""

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for _, column in self.cells))

    @property
    def coverages(self) -> list[int]:
        return list(dict.fromkeys(coverage for coverage, _ in self.cells))


@dataclass(frozen=True)
class PublishedSummary:
    """What stands below a column of a published table."""

    wtl: str
    avg_rank: str


@lru_cache(maxsize=1)
def published_figures() -> dict[str, Figures]:
    """Every table by its name, in the order of the file."""
    found: dict[str, Figures] = {}
    with (FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            table = found.setdefault(line["table"], Figures(line["table"], line["dataset"], {}))
            table.cells[int(line["coverage"]), line["method"]] = PublishedCell(
                float(line["mean"]),
                float(line["std"]),
                line["marker"],
                line["bold"] == "1",
                line["underlined"] == "1",
            )
    return found


@lru_cache(maxsize=1)
def published_summaries() -> dict[tuple[str, str], PublishedSummary]:
    """By table and column."""
    with (FOLDER / "summary.csv").open(encoding="utf-8", newline="") as file:
        return {(x["table"], x["method"]): PublishedSummary(x["wtl"], x["avg_rank"]) for x in csv.DictReader(file)}
