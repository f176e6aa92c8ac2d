"""Write the table of several tasks, and the one of the seeds that it would take."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from statistics import fmean
from typing import Any

from benchmark.measure.statistics import LEVEL, MOST_SEEDS, POWER, TESTS
from benchmark.tables.model import Row, Sheet
from benchmark.tables.summary.compare import Compared, Line, Regime

GAP = "–"
MARKERS = {"better": " •", "worse": " ◦", "tie": ""}
"""The baseline is better or worse, as in the tables of a task."""
SHORT = "short"
WIDEST = 8
"""Columns of a short table, with those of the method and the time."""


@dataclass(frozen=True)
class Summary:
    """One table of several tasks: its columns, its rows, and what it is made of."""

    regimes: Sequence[Regime]
    lines: Sequence[Line]
    row: Row
    """The measure."""
    test: str

    @property
    def baseline(self) -> str:
        return " or ".join(dict.fromkeys(regime.baseline for regime in self.regimes))

    @property
    def measure(self) -> str:
        """Return what the measure is called, without a unit."""
        return self.row.label.partition(" ×")[0].partition(" (")[0]

    @property
    def good(self) -> str:
        return "below" if self.row.lower_is_better else "above"

    @property
    def hides_lines(self) -> bool:
        """Tell whether some methods were compared that are no rows."""
        shown = {line.name for line in self.lines}
        return any(regime.compared.keys() - shown for regime in self.regimes)

    def time(self, line: Line) -> float:
        """Return what a training costs in those of the baseline: the mean over the tasks where that is known."""
        known = [time for regime in self.regimes if not isnan(time := regime.at(line).time)]
        return fmean(known) if known else nan

    def reasons(self) -> dict[str, str]:
        """Return a letter for each reason why a cell is empty, in the order of the rows."""
        found = dict.fromkeys(regime.at(line).reason for line in self.lines for regime in self.regimes)
        return {reason: letter(index) for index, reason in enumerate(filter(None, found))}


def letter(index: int) -> str:
    """Return a, b, …, z, aa, ab, … ."""
    return (letter(index // 26 - 1) if index >= 26 else "") + chr(ord("a") + index % 26)


def summary_sheets(summary: Summary) -> list[Sheet]:
    """Return the table of changes, then that of the seeds it would take."""
    return [changes_sheet(summary), seeds_sheet(summary)]


def changes_sheet(summary: Summary, *, short: bool = False) -> Sheet:
    """Return the table of changes; a short one has few words around it."""
    reasons = summary.reasons()
    lines = [baseline_line(summary)]
    for line in summary.lines:
        cells = [change_text(regime.at(line), usual(regime), reasons) for regime in summary.regimes]
        lines.append((line.name, *cells, time_text(summary.time(line))))
    heading = ("method", *(heading_of(regime) for regime in summary.regimes), f"time ({summary.baseline} = 1)")
    notes = gap_notes(reasons)
    if not short:
        notes += [f"{regime.title}: {note}" for regime in summary.regimes for note in regime.notes]
    else:
        notes += mute_notes(summary)
    text = short_caption(summary) if short else caption(summary)
    return Sheet(SHORT if short else "changes", text, heading, tuple(lines), tuple(notes), numbers_of(summary))


def heading_of(regime: Regime) -> str:
    return f"{regime.title}, n={usual(regime)}"


def usual(regime: Regime) -> int:
    """Return how many seeds most can have: those of the baseline."""
    return 0 if regime.base is None else len(regime.base.values)


def baseline_line(summary: Summary) -> tuple[str, ...]:
    """Return the first row: the baseline's own values."""
    cells = []
    for base in (regime.base for regime in summary.regimes):
        spread = f"±{base.std}" if base is not None and len(base.values) > 1 else ""
        cells.append(f"{base.mean}{spread}" if base is not None and base.values else GAP)
    return (f"{summary.baseline}: {summary.row.label}", *cells, "1")


def change_text(found: Compared, usual_n: int, reasons: dict[str, str]) -> str:
    if not found.n:
        return f"{GAP} {reasons[found.reason]}"
    width = f"±{found.half_width:.1f}" if isfinite(found.half_width) else ""
    lost = f", {found.diverged} diverged" if found.diverged else ""
    count = f" (n={found.n}{lost})" if found.n != usual_n or lost else ""
    return f"{found.mean:+z.1f}{width}{MARKERS[found.verdict]}{count}"


def time_text(ratio: float) -> str:
    return GAP if isnan(ratio) else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def seeds_sheet(summary: Summary) -> Sheet:
    """Return the table of the seeds that it would take to show what is not shown."""
    reasons = summary.reasons()
    lines = [
        (line.name, *(seeds_text(regime.at(line), reasons) for regime in summary.regimes)) for line in summary.lines
    ]
    text = (
        f"Seeds that it would take: for each change of the {summary.measure} that is not significant, how many seeds "
        f"a paired t test of the changes in per cent needs to be significant in {POWER:.0%} of all repetitions (two-"
        f"sided, level {LEVEL:g}, no correction), if mean and standard deviation over the seeds at hand are the true "
        f"ones. Of few seeds that is a rough guess. A number up to n: the t test of this cell alone shows it already, "
        f"the corrected test of the markers does not. •/◦: shown. >{MOST_SEEDS:,}: more than that, or no change."
    )
    heading = ("method", *(heading_of(regime) for regime in summary.regimes))
    return Sheet("seeds", text, heading, tuple(lines), tuple(gap_notes(reasons)))


def seeds_text(found: Compared, reasons: dict[str, str]) -> str:
    if not found.n:
        return f"{GAP} {reasons[found.reason]}"
    if found.is_significant:
        return MARKERS[found.verdict].strip()
    if isnan(found.seeds_needed):
        return GAP
    return f">{MOST_SEEDS:,}" if found.seeds_needed == inf else f"{found.seeds_needed:,.0f}"


def gap_notes(reasons: dict[str, str]) -> list[str]:
    """Return one note on why cells are empty."""
    return [f"{GAP} {'; '.join(f'{mark}: {reason}' for reason, mark in reasons.items())}."] if reasons else []


def mute_notes(summary: Summary) -> list[str]:
    """Return a note on the tasks where too few seeds were run for any marker."""
    mute = [regime.title for regime in summary.regimes if any("no marker is possible" in note for note in regime.notes)]
    return [f"Too few seeds for a marker: {', '.join(mute)}."] if mute else []


def caption(summary: Summary) -> str:
    base, measure = summary.baseline, summary.measure
    return (
        f"Change of the {measure} against {base}, in per cent: mean over the seeds that both have of "
        f"100·(method/{base} − 1), ± half width of its {1 - LEVEL:.0%} t interval; {summary.good} 0 is better than "
        f"{base}. n: seeds. The first line is {base} itself, mean±std. •/◦: {base} is significantly better/worse "
        f"({TESTS[summary.test]}, of the {measure}, level {LEVEL:g}, Holm-corrected over all methods of the "
        f"column{', also those not shown' if summary.hides_lines else ''}). The interval is of each cell by itself. "
        f"Time: seconds of a training in those of {base} of the same seed, median over seeds, mean over tasks; what "
        "several trainings share counts in full for each."
    )


def short_caption(summary: Summary) -> str:
    base, measure = summary.baseline, summary.measure
    return (
        f"Change of the {measure} against {base}, in per cent: mean over n paired seeds ± half width of its "
        f"{1 - LEVEL:.0%} interval; {summary.good} 0 is better. •/◦: {base} is significantly better/worse (Holm-"
        f"corrected). Time: of a training, {base} = 1."
    )


def numbers_of(summary: Summary) -> tuple[dict[str, Any], ...]:
    """Return one line of the CSV file for each cell."""
    lines = [baseline_numbers(summary, regime) for regime in summary.regimes if regime.base is not None]
    return (*lines, *(cell_numbers(line, regime) for line in summary.lines for regime in summary.regimes))


def baseline_numbers(summary: Summary, regime: Regime) -> dict[str, Any]:
    values = [] if regime.base is None else list(regime.base.values)
    value = fmean(values) if values else nan
    return {"row": regime.baseline, "task": regime.task, "value": value, "unit": summary.row.label, "n": len(values)}


def cell_numbers(line: Line, regime: Regime) -> dict[str, Any]:
    found = regime.at(line)
    if not found.n:
        return {"row": line.name, "task": regime.task, "n": 0, "wanted": found.wanted, "reason": found.reason}
    width = found.half_width if isfinite(found.half_width) else nan
    return {
        "row": line.name,
        "task": regime.task,
        "change": found.mean,
        "low": found.mean - width,
        "high": found.mean + width,
        "n": found.n,
        "wanted": found.wanted,
        "diverged": found.diverged,
        "reference_is": found.verdict,
        "p": found.p,
        "p_holm": found.corrected_p,
        "seeds_needed": found.seeds_needed,
        "time": found.time,
    }
