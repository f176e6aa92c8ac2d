"""Table → text: Markdown, LaTeX, CSV. No time, host or path ever enters a table."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from benchmark.cells import Cell, Table
from benchmark.sheet import Sheet

MISSING = "–"
WIDEST = 12
"""Columns of a table that is not turned."""


Grid = tuple[list[str], list[list[str]], list[list[str]]]
"""Heading, rows and the rows below the line, each row with its label first."""


Write = Callable[[str], str]


def grid(table: Table, show: Callable[[Cell], str], escape: Write = str, strong: Write = str) -> Grid:
    """The texts of a table. One with more columns than a page holds is turned: a row for each method."""

    def text(cell: Cell | None) -> str:
        if cell is None:
            return escape(MISSING)
        if cell.values:
            return show(cell)
        return "diverged" if cell.diverged else escape(f"{MISSING} {cell.missing}")

    heading = [escape(table.corner), *map(escape, table.columns)]
    rows = [[escape(row), *(text(table.cells.get((row, column))) for column in table.columns)] for row in table.rows]

    def summary_text(row: str, column: str, value: str) -> str:
        return strong(escape(value)) if (row, column) in table.strong else escape(value)

    below = [
        [escape(row), *(summary_text(row, *pair) for pair in zip(table.columns, values, strict=True))]
        for row, values in table.summary.items()
    ]
    if len(table.columns) <= WIDEST:
        return heading, rows, below
    turned = [list(line) for line in zip(heading, *rows, *below, strict=True)]
    turned[0][0] = escape(f"method \\ {table.corner}")
    return turned[0], turned[1:], []


def markdown(tables: Sequence[Table | Sheet]) -> str:
    return "\n\n".join(map(markdown_table, tables)) + "\n"


def markdown_table(table: Table | Sheet) -> str:
    heading, rows, below = texts(
        table, markdown_cell, lambda text: text.replace("|", r"\|"), lambda text: f"**{text}**"
    )
    align = ("right",) * len(heading)
    text = tabulate(rows + below, heading, tablefmt="pipe", colalign=align, disable_numparse=True)
    return "\n\n".join([table.caption, text, *table.notes])


def texts(table: Table | Sheet, show: Callable[[Cell], str], escape: Write, strong: Write) -> Grid:
    if isinstance(table, Table):
        return grid(table, show, escape, strong)
    return list(map(escape, table.heading)), [list(map(escape, row)) for row in table.rows], []


def markdown_cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else f"<u>{cell.mean}</u>" if cell.second else cell.mean
    spread = f"±{cell.std}" if len(cell.values) > 1 else ""
    return " ".join(filter(None, [mean + spread, {"better": "•", "worse": "◦"}.get(cell.verdict, ""), cell.missing]))


LATEX_OPENING = r"""% Compiles on its own and can be \input into a document that loads booktabs and graphicx.
\makeatletter
\ifx\@nodocument\relax\else
  \documentclass{article}
  \usepackage[landscape,margin=1.5cm]{geometry}
  \usepackage{booktabs,graphicx}
  \pagestyle{empty}
  \begin{document}
  \global\let\selbenchclose\enddocument
\fi
\makeatother
"""
LATEX_CLOSING = "\\ifx\\selbenchclose\\undefined\\else\\expandafter\\selbenchclose\\fi\n"

LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "•": r"$\bullet$",
    "◦": r"$\circ$",
    "×": r"$\times$",
    "³": r"$^3$",
    "−": r"$-$",
    "–": "--",
    "ŷ": r"$\hat{y}$",
}


def escape(text: str) -> str:
    return "".join(LATEX_CHARACTERS.get(character, character) for character in text)


def latex(tables: Sequence[Table | Sheet]) -> str:
    return LATEX_OPENING + "\n".join(map(latex_table, tables)) + LATEX_CLOSING


def latex_table(table: Table | Sheet) -> str:
    heading, rows, below = texts(table, latex_cell, escape, lambda text: rf"\textbf{{{text}}}")
    lines = [" & ".join(heading) + r" \\", r"\midrule", *(" & ".join(row) + r" \\" for row in rows)]
    lines += [r"\midrule", *(" & ".join(row) + r" \\" for row in below)] if below else []
    notes = "".join(f"\n\\par\\smallskip\\footnotesize {escape(note)}" for note in table.notes)
    return "\n".join(
        [
            r"\begin{table}[ht]",
            r"\centering",
            rf"\caption{{{escape(table.caption)}}}",
            r"\smallskip",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{r{'l' * (len(heading) - 1)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}" + notes,
            r"\end{table}",
            "",
        ]
    )


def latex_cell(cell: Cell) -> str:
    mean = rf"\textbf{{{cell.mean}}}" if cell.best else rf"\underline{{{cell.mean}}}" if cell.second else cell.mean
    spread = rf"$\pm${cell.std}" if len(cell.values) > 1 else ""
    marker = {"better": r"\,$\bullet$", "worse": r"\,$\circ$"}.get(cell.verdict, "")
    return mean + spread + marker + (f" {cell.missing}" if cell.missing else "")


def csv(tables: Sequence[Table | Sheet]) -> str:
    """One line per cell, unrounded."""
    rows = [
        {"table": table.name, **line, "modified": table.modified}
        for table in tables
        for line in (cell_lines(table) if isinstance(table, Table) else table.numbers)
    ]
    return str(pd.DataFrame(rows).to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def cell_lines(table: Table) -> list[dict[str, Any]]:
    return [
        {
            "row": row,
            "column": column,
            "mean": np.mean(cell.values) if cell.values else np.nan,
            "std": np.std(cell.values) if cell.values else np.nan,
            "n": len(cell.values),
            "wanted": cell.wanted,
            "diverged": cell.diverged,
            "reference_is": cell.verdict if cell.values else "",
            "p": cell.p,
            "p_holm": cell.corrected_p,
        }
        for row in table.rows
        for column in table.columns
        if (cell := table.cells.get((row, column))) is not None
    ]
