"""Read the figures that the paper prints (configs/published/)."""

import csv
from dataclasses import dataclass
from functools import lru_cache

from benchmark.config.load import CONFIG_DIR

FOLDER = CONFIG_DIR / "published"
ROUNDING = 0.005
"""Largest distance of a printed figure from the exact one."""


@dataclass(frozen=True)
class PublishedCell:
    mean: float
    std: float
    marker: str
    """The printed verdict: the reference is better or worse than this cell; empty = no marker."""
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
    """The lines below a column of a published table."""

    wtl: str
    avg_rank: str


@lru_cache(maxsize=1)
def published_figures() -> dict[str, Figures]:
    """Return every table by its name, in the order of the file."""
    tables: dict[str, Figures] = {}
    with (FOLDER / "cells.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            table = tables.setdefault(line["table"], Figures(line["table"], line["dataset"], {}))
            mean, std = float(line["mean"]), float(line["std"])
            cell = PublishedCell(mean, std, line["marker"], line["bold"] == "1", line["underlined"] == "1")
            table.cells[int(line["coverage"]), line["method"]] = cell
    return tables


@lru_cache(maxsize=1)
def published_summaries() -> dict[tuple[str, str], PublishedSummary]:
    """Return the lines below each column, by table and column."""
    with (FOLDER / "summary.csv").open(encoding="utf-8", newline="") as file:
        return {(x["table"], x["method"]): PublishedSummary(x["wtl"], x["avg_rank"]) for x in csv.DictReader(file)}
