"""Table → text: Markdown, LaTeX, CSV. No time, host or path ever enters a table."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from tabulate import tabulate

from benchmark.tables import Cell, Table

MISSING = "–"


def body(table: Table, show: Callable[[Cell], str]) -> list[list[str]]:
    cells = [[table.cells.get((row, column)) for column in table.columns] for row in table.rows]
    return [[row, *(show(c) if c else MISSING for c in line)] for row, line in zip(table.rows, cells, strict=True)]


def markdown(tables: Sequence[Table]) -> str:
    return "\n\n".join(map(markdown_table, tables)) + "\n"


def markdown_table(table: Table) -> str:
    rows = body(table, markdown_cell) + [[name, *texts] for name, texts in table.summary.items()]
    align = ("right",) * (len(table.columns) + 1)
    grid = tabulate(rows, [table.corner, *table.columns], tablefmt="pipe", colalign=align, disable_numparse=True)
    return "\n\n".join([table.caption, grid, *table.notes])


def markdown_cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else f"<u>{cell.mean}</u>" if cell.second else cell.mean
    spread = f"±{cell.std}" if cell.wanted > 1 else ""
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


def latex(tables: Sequence[Table]) -> str:
    return LATEX_OPENING + "\n".join(map(latex_table, tables)) + LATEX_CLOSING


def latex_table(table: Table) -> str:
    lines = [" & ".join(map(escape, [table.corner, *table.columns])) + r" \\", r"\midrule"]
    lines += [" & ".join([escape(label), *cells]) + r" \\" for label, *cells in body(table, latex_cell)]
    if table.summary:
        lines.append(r"\midrule")
    lines += [" & ".join(map(escape, [name, *texts])) + r" \\" for name, texts in table.summary.items()]
    notes = "".join(f"\n\\par\\smallskip\\footnotesize {escape(note)}" for note in table.notes)
    return "\n".join(
        [
            r"\begin{table}[ht]",
            r"\centering",
            rf"\caption{{{escape(table.caption)}}}",
            r"\smallskip",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{r{'l' * len(table.columns)}}}",
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
    spread = rf"$\pm${cell.std}" if cell.wanted > 1 else ""
    marker = {"better": r"\,$\bullet$", "worse": r"\,$\circ$"}.get(cell.verdict, "")
    return mean + spread + marker + (f" {cell.missing}" if cell.missing else "")


def csv(tables: Sequence[Table]) -> str:
    """One line per cell, unrounded."""
    rows = [
        {
            "table": table.name,
            "row": row,
            "column": column,
            "mean": np.mean(cell.values),
            "std": np.std(cell.values),
            "n": len(cell.values),
            "wanted": cell.wanted,
            "reference_is": cell.verdict,
            "p": cell.p,
        }
        for table in tables
        for row in table.rows
        for column in table.columns
        if (cell := table.cells.get((row, column))) is not None
    ]
    return str(pd.DataFrame(rows).to_csv(index=False, float_format="%.10g", lineterminator="\n"))
