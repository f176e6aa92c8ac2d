"""Turn tables and sheets into HTML: a row for each method, sortable by the page's script, with its LaTeX beside it."""

from collections.abc import Iterator, Sequence
from math import isnan

from benchmark.base.units import counted
from benchmark.report.markup import Markup, details, plain_table, sortable_table, tag
from benchmark.tables import render
from benchmark.tables.captions import split_caption
from benchmark.tables.model import Cell, Sheet, Table
from benchmark.tables.render import latex

MOST_ROWS = 24
"""As many columns as can be looked through sideways."""
MARKERS = {"better": ("•", "reference significantly better"), "worse": ("◦", "reference significantly worse")}


def table_html(table: Table) -> Markup:
    """Return caption, table, notes and LaTeX, with a row for each column of the table."""
    return figure(table, rows_html(table))


def rows_html(table: Table) -> Markup:
    """Return the table alone, with a row for each of its columns; with its own rows where they are many."""
    if len(table.rows) > MOST_ROWS:
        return upright_html(table)
    heading = [f"method \\ {table.corner}", *table.rows, *table.summary]
    body = (
        tag("tr", tag("th", column, scope="row"), table_cells(table, index))
        for index, column in enumerate(table.columns)
    )
    return sortable_table(heading, body, split_caption(table.caption)[0])


def upright_html(table: Table) -> Markup:
    """Return the table with its own rows and columns."""
    cells = [
        tag("tr", tag("th", row, scope="row"), (cell_html(table.cells.get((row, name))) for name in table.columns))
        for row in table.rows
    ]
    below = [
        tag("tr", tag("th", name, scope="row"), (summary_html(table, name, i) for i in range(len(table.columns))))
        for name in table.summary
    ]
    return sortable_table([table.corner, *table.columns], [*cells, *below], split_caption(table.caption)[0])


def summary_html(table: Table, name: str, index: int) -> Markup:
    text = table.summary[name][index]
    return tag("td", tag("b", text) if (name, table.columns[index]) in table.strong else text)


def sheet_html(sheet: Sheet) -> Markup:
    return figure(sheet, plain_table(sheet.heading, sheet.rows, split_caption(sheet.caption)[0]))


def statistics_html(sheets: Sequence[Sheet]) -> Markup:
    """Return the sheets behind markers and ranks, collapsed at first."""
    title = f"Statistics behind the markers and ranks ({counted(len(sheets), 'table')})"
    return details(title, map(sheet_html, sheets)) if sheets else Markup()


def costs_html(tables: Sequence[Table]) -> Markup:
    """Return the tables of costs, collapsed at first."""
    title = f"Costs of errors and rejections ({counted(len(tables), 'table')})"
    return details(title, map(table_html, tables)) if tables else Markup()


def figure(table: Table | Sheet, box: Markup) -> Markup:
    title = split_caption(table.caption)[0]
    caption = tag("p", tag("strong", title), table.caption.removeprefix(title), class_="caption")
    notes = (tag("p", note, class_="note") for note in table.notes)
    return tag("div", caption, box, notes, latex_html(table), class_="figure")


def latex_html(table: Table | Sheet) -> Markup:
    """Return the LaTeX with a button that copies it; where the clipboard is not allowed, it can be copied by hand."""
    button = tag("button", "Copy as LaTeX", type="button", class_="copy needs-script")
    text = tag("pre", latex.table_text(table), tabindex="0")
    return tag("div", button, details("LaTeX", text), class_="latex")


def table_cells(table: Table, index: int) -> Iterator[Markup]:
    column = table.columns[index]
    for row in table.rows:
        yield cell_html(table.cells.get((row, column)))
    for name in table.summary:
        yield summary_html(table, name, index)


def cell_html(cell: Cell | None) -> Markup:
    if cell is None:
        return tag("td", render.MISSING, tag("i"))
    if not cell.values:
        return tag("td", "diverged" if cell.diverged else f"{render.MISSING} {cell.missing}")
    mean = tag("b", cell.mean) if cell.best else tag("u", cell.mean) if cell.second else cell.mean
    spread_text = f"±{cell.std}" if len(cell.values) > 1 else cell.interval_text
    spread = tag("small", spread_text) if spread_text else ""
    missing = f" {cell.missing}" if cell.missing else ""
    p = None if isnan(cell.p) else f"p = {cell.p:.4f}"
    return tag("td", mean, spread, marker_html(cell), missing, title=p)


def marker_html(cell: Cell) -> Markup:
    """Return the marker; an empty place where there is none keeps the digits of a column aligned."""
    if cell.verdict not in MARKERS:
        return tag("i")
    sign, meaning = MARKERS[cell.verdict]
    return tag("i", sign, role="img", aria_label=meaning)
