"""Arrange rows and columns of text: turn them or split them into pages until they fit a width."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Grid(NamedTuple):
    """The texts of a table; the first of each row is its label."""

    heading: list[str]
    rows: list[list[str]]
    below: list[list[str]]
    """Rows under a line of their own."""

    def lines(self) -> list[list[str]]:
        return [self.heading, *self.rows, *self.below]

    def turned(self) -> "Grid":
        """Swap rows and columns; the rows below the line become the last columns."""
        heading, *rows = (list(line) for line in zip(*self.lines(), strict=True))
        return Grid(heading, rows, [])

    def pick(self, columns: Sequence[int]) -> "Grid":
        heading, rows, below = ([[line[i] for i in columns] for line in part] for part in ([self.heading], *self[1:]))
        return Grid(heading[0], rows, below)


class Page(NamedTuple):
    grid: Grid
    widths: list[float]


def widths_of(grid: Grid, measure: Callable[[str], float]) -> list[float]:
    """Return the width of each column."""
    return [max(map(measure, column)) for column in zip(*grid.lines(), strict=True)]


def arrange(candidates: Sequence[Page], room: float) -> list[Page]:
    """Return the pages of the candidate that needs the fewest; of equal ones, of the first."""
    layouts = [(page, group_columns(page.widths, room)) for page in candidates]
    chosen, groups = min(layouts, key=lambda layout: len(layout[1]))
    return [Page(chosen.grid.pick(group), [chosen.widths[i] for i in group]) for group in groups]


def group_columns(widths: Sequence[float], room: float) -> list[list[int]]:
    """Return the columns of each page: equally many on each page, if they fit. The first column is on every page."""
    left = room - widths[0]
    filled: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if filled[-1] and sum(widths[i] for i in filled[-1]) + widths[column] > left:
            filled.append([])
        filled[-1].append(column)
    even = [part.tolist() for part in np.array_split(np.arange(1, len(widths)), len(filled))]
    fits = all(sum(widths[i] for i in part) <= left for part in even)
    return [[0, *part] for part in (even if fits else filled)]
