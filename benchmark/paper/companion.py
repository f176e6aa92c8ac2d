"""A published table beside ours, cell by cell: agrees, lower, higher, or why the two cannot be compared."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmark.cells import Cell, Table
from benchmark.figures import PublishedCell, published_figures
from benchmark.sheet import Sheet
from benchmark.stats import LEVEL, Summary, Welch, mean_std, welch
from benchmark.units import counted

COLUMNS_PER_SHEET = 3
NOT_COMPARABLE = "not comparable"


ROUNDING = 0.005
"""How far a printed figure may lie from the real one."""


def verdict(published: PublishedCell, trials: int, ours: Cell) -> tuple[str, Welch]:
    """Where our risk lies, by Welch's test from mean, std and n of both, allowing for the rounding of what is printed.

    "agrees" says no more than that the runs do not tell the two apart; the half width is what could have shown.
    """
    mean, std = mean_std(ours.values)
    nearest = float(np.clip(mean, published.mean - ROUNDING, published.mean + ROUNDING))
    found = welch(Summary(nearest, published.std + ROUNDING, trials), Summary(mean, std, len(ours.values)))
    if np.isnan(found.p):
        return "one seed", found
    if found.p >= LEVEL:
        return "agrees", found
    return ("lower" if mean < published.mean else "higher"), found


def build_companion(manifest: dict[str, Any], table: Table) -> list[Sheet]:
    """The sheets of a published table: a few columns each, so that they fit a page."""
    lines = [
        compare_cell(manifest, table, coverage, column)
        for column in manifest["columns"]
        for coverage in manifest["coverages"]
    ]
    by_key = {(line["column"], line["coverage"]): line for line in lines}
    chunks = [
        manifest["columns"][start : start + COLUMNS_PER_SHEET]
        for start in range(0, len(manifest["columns"]), COLUMNS_PER_SHEET)
    ]
    sheets = []
    for index, chunk in enumerate(chunks):
        heading = ["coverage"]
        for column in chunk:
            heading += [f"{column}: published", "ours", "verdict"]
        rows = [
            (f"{coverage:g}", *(text for column in chunk for text in texts(by_key[column, coverage])))
            for coverage in manifest["coverages"]
        ]
        numbers = tuple(line for line in lines if line["column"] in chunk)
        part = f" ({index + 1} of {len(chunks)})" if len(chunks) > 1 else ""
        first = index == 0
        caption = f"Published and ours, {manifest['title']}{part}" + (f": {MEANING}" if first else ".")
        notes = (tally(lines), *reasons(manifest)) if first else ()
        sheets.append(Sheet("published", caption, tuple(heading), tuple(rows), notes, numbers))
    return sheets


MEANING = (
    "selective risk (%), mean±std. Verdict: our mean agrees with the published one, or is lower or higher, by Welch's "
    f"test from mean, std and number of runs of both (level {LEVEL:g}, each cell by itself: of cells that are truly "
    f"the same, one in twenty will differ). In brackets the half width of the {1 - LEVEL:.0%} interval of the "
    "difference: 'agrees' says that less than this lies between the two, not that nothing does."
)


def compare_cell(manifest: dict[str, Any], table: Table, coverage: float, column: str) -> dict[str, Any]:
    published = published_figures()[manifest["published"]].cells[int(coverage), column]
    trials, cell = manifest["trials"][column], table.cells.get((f"{coverage:g}", column))
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
        "reason": manifest["incomparable"].get(column, ""),
    }
    if cell is None or not cell.values:
        return line | ({"verdict": "diverged"} if cell and cell.diverged else {})
    found, test = verdict(published, trials, cell)
    mean, std = mean_std(cell.values)
    line |= {"mean": mean, "std": std, "n": len(cell.values)}
    return line | ({"verdict": NOT_COMPARABLE} if line["reason"] else {"verdict": found, **vars(test)})


def texts(line: dict[str, Any]) -> tuple[str, str, str]:
    published = f"{line['published_mean']:.2f}±{line['published_std']:.2f}"
    if not line["n"]:
        return published, "–", line["verdict"] if line["verdict"] == "diverged" else "–"
    spread = f"±{line['std']:.2f}" if line["n"] > 1 else ""
    missing = f" ({line['n']}/{line['wanted']})" if line["n"] < line["wanted"] else ""
    reach = "" if np.isnan(line["half_width"]) else f" (±{line['half_width']:.2f})"
    return published, f"{line['mean']:.2f}{spread}{missing}", line["verdict"] + reach


def tally(lines: Sequence[dict[str, Any]]) -> str:
    """How many cells got which verdict."""
    counts = Counter(line["verdict"] for line in lines)
    order = ("agrees", "lower", "higher", NOT_COMPARABLE, "one seed", "diverged", "no run")
    return (
        f"{counted(len(lines), 'cell')}: " + ", ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind]) + "."
    )


def reasons(manifest: dict[str, Any]) -> list[str]:
    """Why columns do not compare, and where the paper had other numbers of runs than most."""
    grouped: dict[str, list[str]] = {}
    for column, reason in manifest["incomparable"].items():
        grouped.setdefault(reason, []).append(column)
    named = {
        reason: "All columns" if len(columns) == len(manifest["columns"]) else ", ".join(columns)
        for reason, columns in grouped.items()
    }
    trials: dict[int, list[str]] = {}
    for column, n in manifest["trials"].items():
        trials.setdefault(n, []).append(column)
    counts = "; ".join(f"{n} for {', '.join(c) if len(trials) > 1 else 'all columns'}" for n, c in trials.items())
    return [
        *(f"{columns} {NOT_COMPARABLE}: {reason}." for reason, columns in named.items()),
        f"Published runs: {counts}.",
    ]
