"""Read once what all figures of a task are drawn from: the columns of its table and the cells of its risks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from benchmark.figures.style import new_figure
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.build import average_ranks, fill, risk_rows
from benchmark.tables.captions import is_provisional
from benchmark.tables.columns import Column, abbreviate, split_by_coverage
from benchmark.tables.model import Cells, Row
from benchmark.tables.modified import open_table


@dataclass(frozen=True)
class Runs:
    """The runs of a task, as its table shows them."""

    manifest: Manifest
    store: Store
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    cells: Cells
    plain: bool = False
    """Whether figures go without the sentences below them."""

    @property
    def judged(self) -> list[Column]:
        """Columns with at least one run, without the oracle."""
        return [column for column in self.columns if column.records and not column.is_oracle]

    def new_figure(self, width: float, height: float, sentences: Sequence[str]) -> Figure:
        """Return an empty figure with its own sentences below it, and those that every figure of these runs has."""
        return new_figure(width, height, [*sentences, *self.remarks], plain=self.plain)

    @property
    def remarks(self) -> list[str]:
        """Sentences below every figure: runs that are missing, diverged, or different from the task's file."""
        sentences = ["Provisional: not all runs are there."] if is_provisional(self.columns) else []
        lost = [f"{c.name} ({len(c.diverged)})" for c in split_by_coverage(self.columns) if c.diverged and c.published]
        sentences += [f"Diverged runs are left out: {abbreviate(lost)}."] if lost else []
        return sentences + ([self.manifest.modified] if self.manifest.modified else [])

    @property
    def ranked(self) -> dict[str, float]:
        """Average ranks as the table prints them, of the columns that have every cell."""
        names = [column.name for column in self.judged]
        ranks = zip(names, average_ranks(self.rows, names, self.cells), strict=True)
        return {name: float(rank) for name, rank in ranks if rank != "–"}


def load_runs(manifest: Manifest, store: Store, *, plain: bool = False) -> Runs:
    manifest, columns = open_table(manifest, store)
    rows = risk_rows(manifest)
    return Runs(manifest, store, tuple(columns), tuple(rows), fill(rows, columns, manifest), plain)


def seeds_text(columns: Sequence[Column], spread: str = "") -> str:
    """Return how many runs the columns have: '1 seed', 'mean over 3 to 5 seeds'; then `spread`, if one has several."""
    counts = {len(part.records) for column in columns for part in (column.parts or (column,))}
    text = "1 seed" if counts == {1} else f"mean over {span_text(counts)} seeds"
    return text + spread if max(counts) > 1 else text


def span_text(counts: Collection[int]) -> str:
    """Return the smallest and the largest count: '5', or '3 to 5' if they differ."""
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
