"""Write tables as LaTeX that fits a paper of one or two columns without ever being scaled."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from benchmark.tables.captions import split_caption
from benchmark.tables.model import Cell, Sheet, Table
from benchmark.tables.render import markdown_cell, orientations, texts
from benchmark.tables.render.layout import Grid, Page, arrange, widths_of

COLUMN, PAGE = 200.0, 345.0
"""Widest table, in points: a column of a two-column article; the text of an article, or both columns."""
ROWS = 45
"""Rows that fit on a page with a caption and notes."""
NOTES = 12
"""Notes that fit in a float; the others are ordinary text, which may continue on the next page."""
GAP = 6.0
"""Points between two columns."""
WRAPPED = 140.0
"""Points beyond which the texts of a column are broken into lines."""


class Size(NamedTuple):
    points: int
    skip: float
    digit: float
    """Points that a digit is wide."""


SIZES = (Size(9, 11, 4.63), Size(8, 9.5, 4.25), Size(7, 8.4, 3.99))
"""From \\small to \\scriptsize of a 10 pt document. They are in points, so that they are never smaller in another."""

OPENING = r"""% Compiles on its own and can be \input into a document that loads booktabs.
\makeatletter
\ifx\@nodocument\relax\else
  \documentclass[twocolumn]{article}
  \usepackage{booktabs}
  \begin{document}
  \global\let\selbenchclose\enddocument
\fi
\makeatother
"""
CLOSING = "\\ifx\\selbenchclose\\undefined\\else\\expandafter\\selbenchclose\\fi\n"

CHARACTERS = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
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
WIDTHS = {
    0.62: " .,:;'!|()[]-ijlIf",
    0.9: "cerstz",
    1.0: "0123456789",
    1.12: "abdghknopquvxy–J/*?◦•",
    1.75: "mw%MOQ&@~<>=+±×−−#",
    2.1: "W",
}
"""Widths of Computer Modern's characters, rounded up, in digits; all others count as capitals."""
WIDTH_OF = {character: width for width, characters in WIDTHS.items() for character in characters}
CAPITAL, BOLD = 1.55, 1.17

Shown = TypeVar("Shown", Table, Sheet, Table | Sheet)


def document(tables: Sequence[Table | Sheet], stem: str = "") -> str:
    """Return a file that compiles alone and as an \\input; new labels start with `stem`."""
    return OPENING + "\n".join(map(table_text, with_labels(tables, stem))) + CLOSING


def with_labels(tables: Sequence[Shown], stem: str) -> list[Shown]:
    """Give each table a \\label that stays the same when its numbers change: its task and what it measures."""
    seen: Counter[str] = Counter()
    named = []
    for table in tables:
        name = re.sub(r"[^a-z0-9]+", "-", f"{stem} {table.name}".lower()).strip("-")
        seen[name] += 1
        again = f"-{seen[name]}" if seen[name] > 1 else ""
        named.append(table if table.label else replace(table, label=f"tab:{name}{again}"))
    return named


def table_text(table: Table | Sheet) -> str:
    """Return one float, or several if the columns or rows are too many for one."""
    size, room, pages = choose_layout(table)
    parts = [part for page in pages for part in split_rows(page)]
    return "\n".join(float_text(table, part, (i + 1, len(parts)), size, room) for i, part in enumerate(parts))


def choose_layout(table: Table | Sheet) -> tuple[Size, float, list[Page]]:
    """Choose one column if the whole table fits, else the page; there the fewest parts, then the largest type."""
    pages_in_digits = [measured_page(table, turned) for turned in orientations(table)]
    for room in (COLUMN, PAGE):
        layouts = []
        for size in SIZES:
            candidates = [at_size(page, size) for page in pages_in_digits]
            layouts.append((size, arrange(candidates, room + GAP)))
        size, pages = min(layouts, key=lambda layout: (not fits(layout[1], room), len(layout[1])))
        if len(pages) == 1 and fits(pages, room):
            break
    return size, room, pages


def fits(pages: Sequence[Page], room: float) -> bool:
    return all(sum(page.widths) <= room + GAP for page in pages)


def measured_page(table: Table | Sheet, turned: bool) -> Page:
    """Return a table, turned or not, with its widths in digits: those of its Markdown, which shows what is bold."""
    grid = texts(table, cell_text, escape, lambda text: rf"\textbf{{{text}}}", turned)
    plain = texts(table, markdown_cell, str, lambda text: f"**{text}**", turned)
    return Page(grid, widths_of(plain, width_in_digits))


def at_size(page: Page, size: Size) -> Page:
    """Return a page with its widths in points, gaps included, instead of digits."""
    return Page(page.grid, [min(size.digit * width, WRAPPED) + GAP for width in page.widths])


def width_in_digits(text: str) -> float:
    """Return an upper bound of the width of a text."""
    parts = re.sub("</?u>", "", text).split("**")
    widths = [sum(WIDTH_OF.get(character, CAPITAL) for character in part) for part in parts]
    return sum(widths[::2]) + BOLD * sum(widths[1::2])


def split_rows(page: Page) -> list[Page]:
    """Return the parts of a page with so many rows that they fit; the last has the rows below the line."""
    heading, rows, below = page.grid
    parts = []
    for start in range(0, max(1, len(rows)), ROWS):
        is_last = start + ROWS >= len(rows)
        parts.append(Page(Grid(heading, rows[start : start + ROWS], below if is_last else []), page.widths))
    return parts


def float_text(table: Table | Sheet, page: Page, part: tuple[int, int], size: Size, room: float) -> str:
    """Return a short caption, the label and the table; below the last part, how to read it and its notes."""
    (number, count), (title, meaning) = part, split_caption(table.caption)
    name = "table" if room == COLUMN else "table*"
    title += f" ({number} of {count}{'' if number == count else '; notes below the last'})" if count > 1 else ""
    label = table.label + (f"-part-{number}" if number > 1 else "")
    first = (meaning, table.modified)
    all_notes = [*first, *(note for note in table.notes if note not in first)]
    notes = list(filter(None, all_notes)) if number == count else []
    return "\n".join(
        [
            rf"\begin{{{name}}}[tp]",
            r"\centering\sloppy",
            rf"\caption{{{escape(title)}}}" + (rf"\label{{{label}}}" if label else ""),
            r"\smallskip\setlength{\tabcolsep}{3pt}" + type_size(size),
            *tabular(page),
            *([r"\par\smallskip", *note_text(notes[:NOTES])] if notes else []),
            rf"\end{{{name}}}",
            *note_text(notes[NOTES:]),
            "",
        ]
    )


def tabular(page: Page) -> list[str]:
    wraps = [width >= WRAPPED + GAP for width in page.widths]
    kinds = [rf"p{{{WRAPPED:g}pt}}" if wrap else "r" if i == 0 else "l" for i, wrap in enumerate(wraps)]
    heading, rows, below = ([row_text(row, wraps) for row in part] for part in ([page.grid.heading], *page.grid[1:]))
    lines = [*heading, r"\midrule", *rows, *([r"\midrule", *below] if below else [])]
    begin = rf"\begin{{tabular}}{{@{{}}{''.join(kinds)}@{{}}}}"
    return [begin, r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"]


def row_text(row: Sequence[str], wraps: Sequence[bool]) -> str:
    cells = [rf"\raggedright {cell}" if wrap else cell for cell, wrap in zip(row, wraps, strict=True)]
    end = r"\tabularnewline" if any(wraps) else r"\\"  # \raggedright gives \\ another meaning
    return f"{' & '.join(cells)} {end}"


def note_text(notes: Sequence[str]) -> list[str]:
    lines = "\n\\par ".join(map(escape, notes))
    return [rf"{{{type_size(SIZES[1])}\raggedright\noindent {lines}\par}}"] if notes else []


def type_size(size: Size) -> str:
    return rf"\fontsize{{{size.points}}}{{{size.skip:g}}}\selectfont"


def escape(text: str) -> str:
    """Escape a text for LaTeX. 10³ becomes 1000: a raised digit would be smaller than all else in the table."""
    return "".join(CHARACTERS.get(character, character) for character in text.replace("10³", "1000"))


def cell_text(cell: Cell) -> str:
    mean = rf"\textbf{{{cell.mean}}}" if cell.best else rf"\underline{{{cell.mean}}}" if cell.second else cell.mean
    spread = rf"$\pm${cell.std}" if len(cell.values) > 1 else cell.interval_text
    marker = {"better": r"\,$\bullet$", "worse": r"\,$\circ$"}.get(cell.verdict, "")
    return mean + spread + marker + (f" {cell.missing}" if cell.missing else "")
