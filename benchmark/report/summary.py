"""Sum up a table in a sentence."""

from collections.abc import Sequence
from math import isnan

from benchmark.base.units import counted
from benchmark.report.runs import trainings
from benchmark.tables.assemble import Assembled
from benchmark.tables.captions import is_provisional
from benchmark.tables.columns import Column
from benchmark.tables.model import Table


def summary(shown: Assembled) -> str:
    """Return the best average rank, the columns that differ from the reference, the seeds, and missing runs."""
    table, reference = shown.tables[0], shown.manifest.reference
    parts = [best_rank(table), differing(table, reference), seeds(shown), state(shown.columns)]
    return "; ".join(part for part in parts if part) + "."


def best_rank(table: Table) -> str:
    name = next((row for row in table.summary if row.startswith("avg. rank")), None)
    if name is None:
        return ""
    ranks = dict(zip(table.columns, table.summary[name], strict=True))
    ranked = sum(rank not in ("", "–") for rank in ranks.values())
    best = [column for row, column in sorted(table.strong) if row == name]
    if not best or ranked < 2:
        return "" if best else "no column has a rank yet"
    verb = "has" if len(best) == 1 else "have"
    return f"{' and '.join(best)} {verb} the best average rank ({ranks[best[0]]}) of {ranked} ranked columns"


def differing(table: Table, reference: str) -> str:
    """Return how many columns have a marker in at least one row."""
    marked = any(cell.verdict and not isnan(cell.p) for cell in table.cells.values())
    if reference not in table.columns or not marked:
        return ""
    others = [column for column in table.columns if column not in (reference, "oracle")]
    cells = {key: cell for key, cell in table.cells.items() if key[0] in table.rows and key[1] in others}
    higher, lower = (
        {name for (_, name), cell in cells.items() if cell.verdict == kind} for kind in ("better", "worse")
    )
    if not higher | lower and any("no marker is possible" in note for note in table.notes):
        return f"too few seeds for any column to differ significantly from {reference}"
    counts = {"higher": len(higher - lower), "lower": len(lower - higher), "both": len(higher & lower)}
    ways = ", ".join(f"{way} in {count}" for way, count in counts.items() if count)
    count = len(higher | lower)
    verb = "differs" if count == 1 else "differ"
    text = f"{count} of {counted(len(others), 'column')} {verb} significantly from {reference} at one coverage or more"
    return f"{text} (risk {ways})" if ways else text


def seeds(shown: Assembled) -> str:
    counts = sorted({len(entry.seeds) for entry in shown.manifest.entries if entry.seeds})
    return f"{' or '.join(map(str, counts))} {'seed' if counts == [1] else 'seeds'}" if counts else "no seeds"


def state(columns: Sequence[Column]) -> str:
    runs = [column for column in trainings(columns).values() if not column.reason]
    wanted, there = sum(run.wanted for run in runs), sum(len(run.records) + len(run.diverged) for run in runs)
    if is_provisional(columns):
        return f"provisional: {there} of {counted(wanted, 'run')} {'are' if wanted > 1 else 'is'} there"
    diverged = sum(len(run.diverged) for run in runs)
    lost = f", {diverged} of them diverged" if diverged else ""
    return (f"all {wanted} runs are there" if wanted > 1 else "the only run is there") + lost
