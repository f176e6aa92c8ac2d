"""Compare a published table with ours, cell by cell: agrees, lower, higher, or why the two cannot be compared."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

from benchmark.base.units import counted
from benchmark.measure.statistics import LEVEL, Summary, Welch, mean_std, welch
from benchmark.paper.values import ROUNDING, PublishedCell, published_figures
from benchmark.store.manifest import Manifest
from benchmark.tables.model import Cell, Sheet, Table

COLUMNS_PER_SHEET = 3
NOT_COMPARABLE = "not comparable"


def verdict(published: PublishedCell, trials: int, ours: Cell) -> tuple[str, Welch]:
    """Compare our risk with the published one by Welch's test, allowing for the rounding of printed figures.

    "agrees" means only that the runs show no difference; one as large as the half width could have shown.
    """
    mean, std = mean_std(ours.values)
    nearest = float(np.clip(mean, published.mean - ROUNDING, published.mean + ROUNDING))
    test = welch(Summary(nearest, published.std + ROUNDING, trials), Summary(mean, std, len(ours.values)))
    if np.isnan(test.p):
        return "one seed", test
    if test.p >= LEVEL:
        return "agrees", test
    return ("lower" if mean < published.mean else "higher"), test


def build_companion(manifest: Manifest, table: Table) -> list[Sheet]:
    """Return the sheets of a published table: a few columns each, so that they fit a page."""
    columns, coverages = manifest.columns, manifest.coverages
    keys = [(column, coverage) for column in columns for coverage in coverages]
    lines = {(column, coverage): compare_cell(manifest, table, coverage, column) for column, coverage in keys}
    starts = range(0, len(columns), COLUMNS_PER_SHEET)
    sheets = []
    for number, chunk in enumerate((columns[start : start + COLUMNS_PER_SHEET] for start in starts), start=1):
        heading = ("coverage", *(text for column in chunk for text in (f"{column}: published", "ours", "verdict")))
        rows = []
        for coverage in coverages:
            texts = [text for column in chunk for text in line_texts(lines[column, coverage])]
            rows.append((f"{coverage:g}", *texts))
        part = f" ({number} of {len(starts)})" if len(starts) > 1 else ""
        caption = f"Published and ours, {manifest.title}{part}" + (f": {MEANING}" if number == 1 else ".")
        notes = (tally(lines.values()), *reasons(manifest)) if number == 1 else ()
        numbers = tuple(line for line in lines.values() if line["column"] in chunk)
        sheets.append(Sheet("published", caption, heading, tuple(rows), notes, numbers))
    return sheets


MEANING = (
    "selective risk (%), mean±std. Verdict: our mean agrees with the published one, or is lower or higher, by Welch's "
    f"test from mean, std and number of runs of both (level {LEVEL:g}, each cell by itself: of cells that are truly "
    f"the same, one in twenty will differ). In brackets the half width of the {1 - LEVEL:.0%} interval of the "
    "difference: 'agrees' says that less than this lies between the two, not that nothing does."
)


def compare_cell(manifest: Manifest, table: Table, coverage: float, column: str) -> dict[str, Any]:
    published = published_figures()[manifest.published].cells[int(coverage), column]
    trials, cell = manifest.trials[column], table.cells.get((f"{coverage:g}", column))
    line: dict[str, Any] = {
        "column": column,
        "coverage": coverage,
        "published_mean": published.mean,
        "published_std": published.std,
        "published_n": trials,
        "mean": np.nan,
        "std": np.nan,
        "n": 0,
        "wanted": cell.wanted if cell else 0,
        "p": np.nan,
        "half_width": np.nan,
        "verdict": "no run",
        "reason": manifest.incomparable.get(column, ""),
    }
    if cell is None or not cell.values:
        return line | ({"verdict": "diverged"} if cell and cell.diverged else {})
    outcome, test = verdict(published, trials, cell)
    mean, std = mean_std(cell.values)
    line |= {"mean": mean, "std": std, "n": len(cell.values)}
    return line | ({"verdict": NOT_COMPARABLE} if line["reason"] else {"verdict": outcome, **vars(test)})


def line_texts(line: dict[str, Any]) -> tuple[str, str, str]:
    published = f"{line['published_mean']:.2f}±{line['published_std']:.2f}"
    if not line["n"]:
        return published, "–", line["verdict"] if line["verdict"] == "diverged" else "–"
    spread = f"±{line['std']:.2f}" if line["n"] > 1 else ""
    missing = f" ({line['n']}/{line['wanted']})" if line["n"] < line["wanted"] else ""
    reach = "" if np.isnan(line["half_width"]) else f" (±{line['half_width']:.2f})"
    return published, f"{line['mean']:.2f}{spread}{missing}", line["verdict"] + reach


def tally(lines: Collection[dict[str, Any]]) -> str:
    """Say how many cells have each verdict."""
    counts = Counter(line["verdict"] for line in lines)
    order = ("agrees", "lower", "higher", NOT_COMPARABLE, "one seed", "diverged", "no run")
    texts = [f"{counts[kind]} {kind}" for kind in order if counts[kind]]
    return f"{counted(len(lines), 'cell')}: {', '.join(texts)}."


def reasons(manifest: Manifest) -> list[str]:
    """Say why columns cannot be compared, and how many runs are behind each published column."""
    incomparable, trials = manifest.incomparable, manifest.trials
    notes = []
    for reason in dict.fromkeys(incomparable.values()):
        columns = [column for column in incomparable if incomparable[column] == reason]
        names = "All columns" if len(columns) == len(manifest.columns) else ", ".join(columns)
        notes.append(f"{names} {NOT_COMPARABLE}: {reason}.")
    numbers, counts = dict.fromkeys(trials.values()), []
    for n in numbers:
        columns = [column for column in trials if trials[column] == n]
        counts.append(f"{n} for {', '.join(columns) if len(numbers) > 1 else 'all columns'}")
    return [*notes, f"Published runs: {'; '.join(counts)}."]
