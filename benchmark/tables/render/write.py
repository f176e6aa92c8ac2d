"""Write tables to files, and as text for a terminal."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.base.files import write_if_changed
from benchmark.tables import render
from benchmark.tables.assemble import Assembled
from benchmark.tables.model import Sheet, Table
from benchmark.tables.render import latex
from benchmark.tables.render.runs_csv import runs_csv
from benchmark.tables.sheets.scores import SCORES


def write_tables(shown: Assembled, folder: Path) -> list[Path]:
    """Write the tables and statistics of one task below a results folder; return the files."""
    paths = write_files(folder / "tables", shown.name, shown.tables)
    paths += write_files(folder / "tables", f"{shown.name}-statistics", shown.statistics)
    if shown.costs:
        paths += write_files(folder / "tables", f"{shown.name}-costs", shown.costs)
    paths.append(folder / "tables" / f"{shown.name}-runs.csv")
    write_if_changed(paths[-1], runs_csv(shown.manifest, shown.columns).encode())
    return paths


def write_paper_table(shown: Assembled, folder: Path) -> list[Path]:
    """Write a published table in its own form, its companion with the published figures, and the statistics."""
    paths = write_files(folder / "paper", shown.name, shown.tables)
    paths += write_files(folder / "paper", f"{shown.name}-published", shown.companion)
    return paths + write_files(folder / "paper", f"{shown.name}-statistics", shown.statistics)


def write_files(folder: Path, name: str, tables: Sequence[Table | Sheet]) -> list[Path]:
    """Write some tables as Markdown, LaTeX and CSV; return the files."""
    texts = {"md": render.markdown(tables), "tex": latex.document(tables, name), "csv": render.csv(tables)}
    paths = [folder / f"{name}.{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_if_changed(path, text.encode())
    return paths


def tables_text(shown: Assembled, width: int | None = None) -> str:
    """Return tables as text for a terminal of this width; whole for a file or another program."""
    end = f"Published and ours: {shown.companion[0].notes[0]}\n" if shown.companion else ""
    asked_for = [sheet for sheet in shown.statistics if sheet.name == SCORES]
    return f"\n## {shown.title}\n\n{render.markdown([*shown.tables, *asked_for], width)}\n{end}"
