"""Define tables of parts before they are filled, and fill them as all tables are filled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmark.store.manifest import Manifest
from benchmark.tables.build import fill, fill_cell, summary_of, unknown_notes
from benchmark.tables.captions import caption, table_notes, test_notes
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.model import Cells, Row, Table

PERCENTILES = (
    "Risks at a coverage are those of exactly that share of the images, ties by expectation; percentiles are used only "
    "in tables of all images together."
)


@dataclass(frozen=True)
class Outline:
    """What a table shows: its rows, and the words around them."""

    name: str
    title: str
    corner: str
    rows: tuple[Row, ...]
    meaning: str = ""
    """What a reader must know of the images and thresholds, in sentences."""
    unit: str = "risk (%)"
    """Of its values, where all rows have the same."""
    undirected: frozenset[str] = frozenset()
    """Rows in which no value is better than another: they are neither marked nor compared."""
    ranked: bool = True
    """Whether its rows can be counted together: w/t/l and average ranks stand below them."""
    notes: tuple[str, ...] = ()

    @property
    def directed_rows(self) -> list[Row]:
        return [row for row in self.rows if row.label not in self.undirected]

    @property
    def is_at_coverages(self) -> bool:
        """Tell whether each row has a coverage: then a training for one coverage fills its own rows."""
        return all(row.coverage is not None for row in self.rows)


def fill_outline(outline: Outline, columns: Sequence[Column], manifest: Manifest) -> Cells:
    """Return the cells of all rows; those with a direction are compared with the reference and with their row."""
    pairs = [(row, column) for row in outline.rows for column in columns]
    cells = {(row.label, column.name): fill_cell(row, column, manifest.ddof) for row, column in pairs}
    there = {key: cell for key, cell in cells.items() if cell is not None}
    return there | fill(outline.directed_rows, columns, manifest)


def shown_columns(outline: Outline, columns: Sequence[Column]) -> list[Column]:
    """Return the columns of a table: one per training where its rows are not about coverages."""
    judged = [column for column in columns if not column.is_oracle]
    return judged if outline.is_at_coverages else split_by_coverage(judged)


def over_seeds(manifest: Manifest) -> Manifest:
    """Return the manifest without intervals: images are resampled only where all of a set are together."""
    return replace(manifest, intervals=False)


def table_of(outline: Outline, manifest: Manifest, columns: Sequence[Column]) -> Table:
    """Return the table of an outline."""
    manifest, shown = over_seeds(manifest), shown_columns(outline, columns)
    cells, rows = fill_outline(outline, shown, manifest), outline.directed_rows
    how = caption(manifest, cells) if rows else "mean±std over the same runs."
    ranked = outline.ranked and rows
    summary, strong = summary_of(rows, shown, cells, manifest) if ranked else ({}, frozenset[tuple[str, str]]())
    percentiles = (PERCENTILES,) if manifest.threshold == "percentile" and rows else ()
    counted = manifest if ranked else replace(manifest, shows=tuple(s for s in manifest.shows if s != "w/t/l"))
    return Table(
        name=outline.name,
        caption=f"{outline.title}: {how} {outline.meaning}",
        corner=outline.corner,
        rows=tuple(row.label for row in outline.rows),
        columns=tuple(column.name for column in shown),
        cells=cells,
        summary=summary,
        strong=strong,
        notes=(
            *(test_notes(counted, shown, cells) if rows else ()),
            *table_notes(manifest, columns),
            *unknown_notes(outline.rows, shown),
            *outline.notes,
            *percentiles,
        ),
        transposed=manifest.transpose,
    )
