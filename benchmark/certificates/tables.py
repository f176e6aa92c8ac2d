"""Build all tables and sheets of certified thresholds."""

from collections.abc import Sequence
from typing import NamedTuple

from benchmark.certificates.group_sheets import group_sheets
from benchmark.certificates.outlines import certified_outline, coverage_outline, shift_outline, tested_outline
from benchmark.certificates.runs import CertifiedRun
from benchmark.certificates.shown import Certified, percent
from benchmark.measure.statistics import LEVEL
from benchmark.tables.columns import Column
from benchmark.tables.model import Sheet, Table
from benchmark.tables.sets.outline import Outline, fill_outline, shown_columns, table_of
from benchmark.tables.statistics import corrected_sheet, pair_sheets

BROKEN = (
    "Broken: runs in which more of the kept test images are wrong than was guaranteed. Test images are a sample as "
    "well: where the true risk lies just below the bound, a run can look broken by chance. Clearly: it has so many "
    f"errors that chance makes them in fewer than {LEVEL:.0%} of test sets."
)


def certified_tables(shown: Certified) -> list[Table | Sheet]:
    """Return the tables and sheets of what was certified."""
    columns = [each.column for each in shown.columns]
    outlines = []
    if shown.wanted.risks:
        outlines += [certified_outline(shown), tested_outline(shown)]
        outlines += [shift_outline(shown)] if shown.shifted else []
    outlines += [coverage_outline(shown)] if shown.wanted.coverages else []
    tables: list[Table | Sheet] = [table_of(outline, shown.manifest, columns) for outline in outlines]
    if shown.wanted.risks:
        tables.append(violations_sheet(shown))
        tables += statistics_sheets(shown, outlines[0], columns)
    return [*tables, *group_sheets(shown)]


class Tally(NamedTuple):
    """How many of the runs with a guarantee look broken."""

    broken: int = 0
    clearly: int = 0
    n: int = 0

    def plus(self, other: "Tally") -> "Tally":
        return Tally(*map(sum, zip(self, other, strict=True)))

    @property
    def text(self) -> str:
        clearly = f" ({self.clearly} clearly)" if self.clearly else ""
        return f"{self.broken} of {self.n}{clearly}" if self.n else "–"


def tally(runs: Sequence[CertifiedRun], risk: float) -> Tally:
    given = [run for run in runs if run.at_risk[risk].threshold is not None]
    return Tally(
        sum(run.is_broken(risk) for run in given), sum(run.is_clearly_broken(risk) for run in given), len(given)
    )


def violations_sheet(shown: Certified) -> Sheet:
    """Return a sheet that counts the guarantees that look broken on the test images, against δ."""
    rows, numbers = [], []
    totals = {risk: Tally() for risk in shown.wanted.risks}
    for column in shown.columns:
        tallies = {risk: tally(column.runs, risk) for risk in shown.wanted.risks}
        totals = {risk: totals[risk].plus(tallies[risk]) for risk in totals}
        rows.append((column.name, *(each.text for each in tallies.values())))
        numbers += [{"column": column.name, "row": percent(r), **each._asdict()} for r, each in tallies.items()]
    if len(rows) > 1:
        rows.append(("all", *(each.text for each in totals.values())))
    return Sheet(
        "certified-broken",
        f"Guarantees that look broken on {shown.manifest.title}, of those that were given: a share of "
        f"{percent(shown.wanted.delta)} % may be. {BROKEN}",
        ("method \\ risk at most (%)", *(percent(risk) for risk in shown.wanted.risks)),
        tuple(rows),
        notes=("Runs of one seed share their held-out images, so methods are broken together more often than alone.",),
        numbers=tuple(numbers),
    )


def statistics_sheets(shown: Certified, outline: Outline, columns: Sequence[Column]) -> list[Sheet]:
    """Return what is left of the markers after corrections, and paired differences of certified coverage."""
    manifest = shown.manifest
    judged = [column for column in shown_columns(outline, columns) if column.records]
    names = [column.name for column in judged]
    others = [name for name in names if name != manifest.reference]
    if not others or len(others) == len(names) or manifest.judged_by_images:
        return []
    cells = fill_outline(outline, judged, manifest)
    what = "certified coverage"
    sheets = [corrected_sheet(manifest, outline.rows, others, cells, what)]
    return sheets + (pair_sheets(manifest, outline.rows, others, cells, what, "risk") if manifest.paired else [])
