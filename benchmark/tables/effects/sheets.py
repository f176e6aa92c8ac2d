"""Build the sheets of a crossed grid: main effects, and interactions."""

from collections.abc import Sequence
from math import nan
from typing import Any

from benchmark.measure.effects import flips_text, smallest_flip_p, smallest_flip_p_text
from benchmark.measure.statistics import LEAST_SEEDS, LEVEL, seeds_needed
from benchmark.store.manifest import Manifest
from benchmark.tables.columns import Column, abbreviate
from benchmark.tables.effects.grid import RESPONSES, Grid, find_grid
from benchmark.tables.effects.lines import Estimate, Line, interactions, main_effects
from benchmark.tables.model import Row, Sheet

NONE = "–"
NAMES = ("effects", "interactions")
BLOCKS = (
    "All cells of a seed share its split, initial weights and batches, so seeds are blocks: n is their number, also "
    "over all methods."
)
HOW_TO_READ = (
    f"Mean over seeds ± half width of the {1 - LEVEL:.0%} t interval. Lower is better for AURC and AUGRC, so that an "
    "effect below zero is good there; for accuracy and ranking one above zero is. Ranking: the part of the fall of "
    "AUGRC against the same method and seed without ingredients that the AUROC alone would give. * p below "
    f"{LEVEL:g} with Holm's correction over the lines of that column ({flips_text()}). {BLOCKS}"
)


def effect_sheets(manifest: Manifest, columns: Sequence[Column]) -> list[Sheet]:
    """Return the sheets, if the manifest has factors and some run is there."""
    grid = find_grid(manifest, columns)
    if grid is None:
        return []
    first = (
        f"Main effects on {manifest.title}: what an ingredient changes, with it minus without it, in the mean over "
        f"all cells of the other factors. {HOW_TO_READ}"
    )
    second = (
        f"Interactions on {manifest.title}: a × b is what a changes beside b minus what it changes without b, in the "
        f"mean over all cells of the other factors{minus_text(grid)}. {HOW_TO_READ}"
    )
    shown = zip(NAMES, (first, second), (main_effects(grid), interactions(grid)), strict=True)
    return [
        sheet_of(name, caption, lines, grid, manifest)
        for name, caption, lines in shown
        if lines and lines[0].by_response
    ]


def minus_text(grid: Grid) -> str:
    meaning = f"the main effect of a minus that for {grid.baseline}"
    return f"; a (minus {grid.baseline}) is {meaning}" if grid.baseline in grid.methods else ""


def sheet_of(name: str, caption: str, lines: Sequence[Line], grid: Grid, manifest: Manifest) -> Sheet:
    """Return a sheet with a line for each effect. The p-values are those of its first response."""
    rows = [row for row in RESPONSES if row.measure in lines[0].by_response]
    more = manifest.decimals - Manifest.decimals
    first = rows[0].label.split()[0]
    heading = ("method: effect", *(row.label for row in rows), "seeds", f"p, {first}", f"Holm p, {first}")
    family = sum(bool(line.by_response[rows[0].measure].n) for line in lines)
    texts = []
    for line in lines:
        tested = line.by_response[rows[0].measure]
        cells = (cell_text(line.by_response[row.measure], row.decimals + more) for row in rows)
        texts.append((line.name, *cells, str(tested.n or NONE), *p_texts(tested, family)))
    numbers = (number for line in lines for row in rows if (number := numbers_of(line, row)))
    return Sheet(name, caption, heading, tuple(texts), tuple(notes_of(lines, rows, grid, family)), tuple(numbers))


def cell_text(shown: Estimate, decimals: int) -> str:
    if not shown.n:
        return NONE
    interval = f"±{shown.half_width:.{decimals}f}" if shown.n > 1 else ""
    return f"{shown.mean:+z.{decimals}f}{interval}{'*' if shown.is_significant else ''}"


def p_texts(shown: Estimate, family: int) -> tuple[str, str]:
    """Return p as it is and corrected; where no value of the runs could make it small, how many seeds that takes."""
    if not shown.n:
        return NONE, NONE
    alone = f"{shown.p:.4f}" if smallest_flip_p(shown.n) < LEVEL else f"needs {seeds_needed('paired')} seeds"
    possible = shown.reachable_p < LEVEL
    return alone, f"{shown.holm_p:.4f}" if possible else f"needs {seeds_needed('paired', family)} seeds"


def numbers_of(line: Line, row: Row) -> dict[str, Any]:
    """Return a line of the CSV file; nothing where there is no estimate."""
    shown = line.by_response[row.measure]
    if not shown.n:
        return {}
    has_interval = shown.n > 1
    return {
        "column": line.method,
        "effect": line.effect,
        "row": row.label,
        "mean": shown.mean,
        "low": shown.mean - shown.half_width if has_interval else nan,
        "high": shown.mean + shown.half_width if has_interval else nan,
        "p": shown.p,
        "p_holm": shown.holm_p,
        "n": shown.n,
        "smallest_p": smallest_flip_p(shown.n),
    }


def notes_of(lines: Sequence[Line], rows: Sequence[Row], grid: Grid, family: int) -> list[str]:
    """Return what the factors are, what the seeds can show, and what is left out of which lines."""
    factors = "; ".join(f"{name} ({', '.join(levels)})" for name, levels in grid.factors)
    zeros = ", ".join(dict.fromkeys(grid.zeros))
    counts = {each.n for line in lines for each in line.by_response.values() if each.n}
    notes = [f"Factors: {factors}. Effects are counted from {zeros}."]
    notes += [smallest_flip_p_text(counts, family)] if counts else []
    if counts and min(counts) < LEAST_SEEDS:
        notes.append(f"From intervals of fewer than {LEAST_SEEDS} seeds nothing is concluded.")
    names_by_text: dict[str, list[str]] = {}
    for line in lines:
        for text, about in remarks_of(line, rows).items():
            where = "" if len(about) == len(rows) else f" ({', '.join(about)})"
            names_by_text.setdefault(f"{where}: {text}.", []).append(line.name)
    return notes + [abbreviate(names) + text for text, names in names_by_text.items()]


def remarks_of(line: Line, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return what is to be said of a line, with the responses that it concerns."""
    about: dict[str, list[str]] = {}
    for row in rows:
        shown = line.by_response[row.measure]
        for text in filter(None, (shown.reason and f"no effect ({shown.reason})", *shown.remarks)):
            about.setdefault(text, []).append(row.label.split()[0])
    return about
