"""Write tables as Markdown and CSV. No time, host or path ever enters a table."""

import io
from collections.abc import Callable, Mapping, Sequence
from csv import DictWriter
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmark.tables.model import Cell, Sheet, Table
from benchmark.tables.render.layout import Grid, Page, arrange, widths_of

MISSING = "–"
WIDEST = 12
"""Columns that a table in a file may have before it is turned."""

Write = Callable[[str], str]


def texts(table: Table | Sheet, show: Callable[[Cell], str], escape: Write, strong: Write, turned: bool) -> Grid:
    """Return the texts of a table or sheet; a turned table has a row for each method instead of a column."""
    if isinstance(table, Sheet):
        return Grid(list(map(escape, table.heading)), [list(map(escape, row)) for row in table.rows], [])
    corner = f"method \\ {table.corner}" if turned else table.corner
    grid = Grid([escape(text) for text in (corner, *table.columns)], [], [])
    for row in table.rows:
        cells = [table.cells.get((row, column)) for column in table.columns]
        grid.rows.append([escape(row), *(show(cell) if cell and cell.values else escape(gap(cell)) for cell in cells)])
    for row, values in table.summary.items():
        line = [escape(row)]
        for column, value in zip(table.columns, values, strict=True):
            line.append(strong(escape(value)) if (row, column) in table.strong else escape(value))
        grid.below.append(line)
    return grid.turned() if turned else grid


def gap(cell: Cell | None) -> str:
    """Return the text of a cell without a value."""
    if cell is None:
        return MISSING
    return "diverged" if cell.diverged else f"{MISSING} {cell.missing}"


def orientations(table: Table | Sheet) -> tuple[bool, ...]:
    """Return the values that `turned` may take: a transposed table is always turned, others only to save room."""
    if isinstance(table, Sheet):
        return (False,)
    return (True,) if table.transposed else (False, True)


def markdown(tables: Sequence[Table | Sheet], width: int | None = None) -> str:
    """Return Markdown for a file; or for a terminal of this width, where wide tables are turned or split into pages."""
    return "\n\n".join(markdown_table(table, width) for table in tables) + "\n"


def markdown_table(table: Table | Sheet, width: int | None = None) -> str:
    turns = sorted(orientations(table), reverse=isinstance(table, Table) and len(table.columns) > WIDEST)
    grids = [
        texts(table, markdown_cell, lambda text: text.replace("|", r"\|"), lambda text: f"**{text}**", turned)
        for turned in turns
    ]
    candidates = [Page(each, pipe_widths(each)) for each in grids]
    pages = [Page(grids[0], [])] if width is None else arrange(candidates, width - 1)
    return "\n\n".join([table.caption, *(pipes(page.grid) for page in pages), *table.notes])


def pipe_widths(shown: Grid) -> list[float]:
    """Return the width of each column with the blanks and the line beside it; tabulate adds two more to a heading."""
    padded = shown._replace(heading=[f"{text}  " for text in shown.heading])
    return [width + 3 for width in widths_of(padded, len)]


def pipes(shown: Grid) -> str:
    heading, *rows = shown.lines()
    align = ("right",) * len(heading)
    return str(tabulate(rows, heading, tablefmt="pipe", colalign=align, disable_numparse=True))


def markdown_cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else f"<u>{cell.mean}</u>" if cell.second else cell.mean
    spread = f"±{cell.std}" if len(cell.values) > 1 else cell.interval_text
    return " ".join(filter(None, [mean + spread, {"better": "•", "worse": "◦"}.get(cell.verdict, ""), cell.missing]))


def csv(tables: Sequence[Table | Sheet]) -> str:
    """Return one line per cell, with unrounded numbers."""
    return lines_csv(
        [
            {"table": table.name, **line, "modified": table.modified}
            for table in tables
            for line in (cell_lines(table) if isinstance(table, Table) else table.numbers)
        ]
    )


def lines_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return lines as CSV; a line may lack some of the columns."""
    text = io.StringIO(newline="")
    writer = DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_text(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def csv_text(value: Any) -> Any:
    """Return a value as a line of a CSV file has it: ten digits of a number, nothing where there is none."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"
    return value


def cell_lines(table: Table) -> list[dict[str, Any]]:
    return [
        {
            "row": row,
            "column": column,
            "mean": np.mean(cell.values) if cell.values else np.nan,
            "std": cell.spread,
            "n": len(cell.values),
            "wanted": cell.wanted,
            "diverged": cell.diverged,
            "reference_is": cell.verdict if cell.values else "",
            "p": cell.p,
            "p_holm": cell.corrected_p,
            **({} if cell.interval is None else dict(zip(("low", "high"), cell.interval, strict=True))),
        }
        for row in table.rows
        for column in table.columns
        if (cell := table.cells.get((row, column))) is not None
    ]
