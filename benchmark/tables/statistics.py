"""Build the sheets behind a table's markers and ranks: corrections, pairs, resampled ranks, variances and gains."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

import numpy as np

from benchmark.measure.metrics import sampling_variance
from benchmark.measure.statistics import (
    LEAST_SEEDS,
    LEVEL,
    Array,
    bootstrap_ranks,
    paired,
    paired_difference,
    probability_of_best,
    seeds_needed,
    smallest_p_text,
)
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.tables.build import average_ranks, complete_columns, fill, risk_rows, run_values, wins_ties_losses
from benchmark.tables.columns import Column, gains_by_seed, split_by_coverage
from benchmark.tables.effects.sheets import effect_sheets
from benchmark.tables.intervals import repeats_images
from benchmark.tables.markers import compared_keys, family_sizes, judge, reachable_p, run_tests
from benchmark.tables.model import Cell, Cells, Row, Sheet
from benchmark.tables.sheets.intervals import interval_sheets
from benchmark.tables.sheets.scores import scores_sheet

RESAMPLES = 2000
EMPTY = Cell({}, 0, 0)
WAYS = (
    ("rank-sum", "exact", ""),
    ("Holm, row", "exact", "row"),
    ("Holm, column", "exact", "column"),
    ("Holm, table", "exact", "table"),
    ("signed-rank", "paired", ""),
    ("signed-rank, Holm, table", "paired", "table"),
)
"""Heading, test, and the cells that Holm's correction covers."""


def build_statistics(manifest: Manifest, columns: Sequence[Column]) -> list[Sheet]:
    """Return the sheets for which there are enough runs."""
    judged = [column for column in columns if not column.is_oracle and column.records]
    rows = risk_rows(manifest)
    cells = fill(rows, judged, manifest)
    names = [column.name for column in judged]
    others = [name for name in names if name != manifest.reference]
    sheets: list[Sheet | None] = [scores_sheet(manifest, judged)]
    if others and len(others) < len(names) and not manifest.judged_by_images:
        sheets.append(corrected_sheet(manifest, rows, others, cells))
        sheets += pair_sheets(manifest, rows, others, cells) if manifest.paired else []
    sheets += [ranks_sheet(manifest, rows, names, cells), variance_sheet(manifest, rows, judged)]
    sheets.append(gain_sheet(manifest, split_by_coverage(judged)) if manifest.paired else None)
    sheets += [*interval_sheets(manifest, judged), *effect_sheets(manifest, columns)]
    return [sheet for sheet in sheets if sheet is not None]


def corrected_sheet(
    manifest: Manifest, rows: Sequence[Row], names: Sequence[str], cells: Cells, what: str = ""
) -> Sheet:
    """Return a sheet with w/t/l of each column for each test and correction, or how many seeds a marker needs.

    `what` names the values where they are not the risks of the task's table.
    """
    reference, numbers, texts = manifest.reference, [], {name: [name] for name in names}
    ways = [way for way in WAYS if manifest.paired or way[1] != "paired"]
    outcomes = {test: run_tests(cells, reference, test) for test in ("exact", "paired")}
    for _, test, family in ways:
        marked = judge(cells, outcomes[test], rows, reference, test, family)
        keys = compared_keys(marked)
        sizes, reachable = family_sizes(keys, family), reachable_p(marked, keys, reference, test, family)
        for name in names:
            own = [key for key in keys if key[1] == name]
            possible = any(reachable[key] < LEVEL for key in own)
            counts = wins_ties_losses(rows, name, marked, reference)
            needed = f"needs {seeds_needed(test, max((sizes[key] for key in own), default=1))} seeds" if own else "–"
            texts[name].append(counts if possible else needed)
            numbers.append({"column": name, "test": test, "holm": family, "w/t/l": counts, "possible": possible})
    differences = f"differences in {what}" if what else "differences"
    pairs = ", and by the exact signed-rank test over seeds" if manifest.paired else ""
    return Sheet(
        "corrected",
        f"What is left of the {differences} on {manifest.title}: how often {reference} is significantly better / not "
        f"different / worse (level {LEVEL:g}), by the exact rank-sum test as it is, with Holm's correction over the "
        f"columns of a row, the rows of a column or the whole table{pairs}. "
        "'Needs n seeds': with fewer no marker is possible, whatever the values.",
        ("method", *(heading for heading, _, _ in ways)),
        tuple(tuple(line) for line in texts.values()),
        numbers=tuple(numbers),
    )


def pair_sheets(
    manifest: Manifest,
    rows: Sequence[Row],
    names: Sequence[str],
    cells: Cells,
    what: str = "risk",
    by: str = "coverage",
) -> list[Sheet]:
    """Return two sheets: differences from the reference, seed by seed, with t intervals; correlations over seeds."""
    reference, numbers = manifest.reference, []
    differences, correlations = [], []
    for name in names:
        difference_line, correlation_line = [name], [name]
        for row in rows:
            ours, theirs = (cells.get((row.label, column), EMPTY) for column in (reference, name))
            pair = paired_difference(*paired(ours.by_seed, theirs.by_seed))
            interval = f"±{pair.half_width:.2f}" if pair.n > 1 else ""
            star = "*" if pair.leaves_zero_out else ""
            difference_line.append(f"{pair.mean:+z.2f}{interval}{star}" if pair.n else "–")
            correlation_line.append("–" if isnan(pair.correlation) else f"{pair.correlation:.2f}")
            if pair.n:
                numbers.append({"column": name, "row": row.label, **vars(pair)})
        differences.append(tuple(difference_line))
        correlations.append(tuple(correlation_line))
    heading = (f"method \\ {by}", *(row.label for row in rows))
    return [
        Sheet(
            "differences",
            f"Paired differences on {manifest.title}: {what} minus that of {reference}, in points, seed by seed, with "
            f"the half width of the {1 - LEVEL:.0%} t interval of the mean; * the interval leaves 0 out (each cell by "
            f"itself, no correction; from {LEAST_SEEDS} seeds on, and never without a spread). The signed-rank test "
            f"can mark nothing below {seeds_needed('paired')} seeds.",
            heading,
            tuple(differences),
            numbers=tuple(numbers),
        ),
        Sheet(
            "correlations",
            f"Correlation over seeds of the {what} with that of {reference} on {manifest.title}. Where it is clearly "
            "positive, pairs say more than the rank-sum test, which ignores them.",
            heading,
            tuple(correlations),
        ),
    ]


@dataclass(frozen=True)
class DrawnRanks:
    """Average ranks under resampling: of the columns that have every cell, over the seeds that most of them have."""

    names: tuple[str, ...]
    short: tuple[str, ...]
    """Columns that are left out, as they lack some of these seeds."""
    seeds: tuple[int, ...]
    ranks: Array | None
    """(draws, names); None where the seeds are too few to resample."""


def draw_ranks(rows: Sequence[Row], names: Sequence[str], cells: Cells, *, paired: bool = True) -> DrawnRanks | None:
    """Resample the seeds and rank the columns in each draw; None where fewer than two columns or two seeds are left.

    Where seeds are no pairs, their names mean nothing: they are counted, and drawn for each column by itself.
    """
    if not paired:
        cells = {key: replace(cell, by_seed=dict(enumerate(cell.values))) for key, cell in cells.items()}
    seeds_of = {}
    for name in complete_columns(rows, names, cells):
        seeds_of[name] = frozenset.intersection(*(frozenset(cells[row.label, name].by_seed) for row in rows))
    counts = Counter(seeds_of.values())
    usual = max(counts, key=lambda seeds: (counts[seeds], len(seeds)), default=frozenset())
    ranked = tuple(name for name, seeds in seeds_of.items() if seeds >= usual)
    short = tuple(name for name in seeds_of if name not in ranked)
    seeds = tuple(sorted(usual))
    if len(ranked) < 2 or len(seeds) < 2:
        return None
    if len(seeds) < LEAST_SEEDS:
        return DrawnRanks(ranked, short, seeds, None)
    values = [cells[row.label, name].by_seed[seed] for name in ranked for seed in seeds for row in rows]
    cube = np.array(values).reshape(len(ranked), len(seeds), len(rows))
    ranks = bootstrap_ranks(cube, rows[0].decimals, RESAMPLES, np.random.default_rng(0), together=paired)
    return DrawnRanks(ranked, short, seeds, ranks)


def ranks_sheet(manifest: Manifest, rows: Sequence[Row], names: Sequence[str], cells: Cells) -> Sheet | None:
    """Return a sheet with the average ranks and, with enough seeds, how far they depend on the seeds."""
    drawn = draw_ranks(rows, names, cells, paired=manifest.paired)
    if drawn is None:
        return None
    seeds, ranks = len(drawn.seeds), drawn.ranks
    heading: tuple[str, ...] = ("method", "avg. rank")
    lines: list[tuple[str, ...]] = list(zip(drawn.names, average_ranks(rows, drawn.names, cells), strict=True))
    numbers = [{"column": name, "avg_rank": float(rank)} for name, rank in lines]
    notes = [f"Left out, as they lack seeds that most have: {', '.join(drawn.short)}."] if drawn.short else []
    notes.append(smallest_p_text(seeds))
    caption = (
        f"Average ranks on {manifest.title}: how far they depend on the seeds is not said, as {seeds} seeds are too "
        f"few to draw from (it takes {LEAST_SEEDS})."
    )
    if ranks is not None:
        alike = "the same for all methods" if manifest.paired else "for each method by itself"
        caption = (
            f"How far the average ranks on {manifest.title} depend on the seeds: {RESAMPLES:,} times {seeds} "
            f"seeds were drawn with replacement, {alike}. Equal printed means share the smaller rank. "
            "P(best): share of draws with the lowest average rank."
        )
        notes.insert(0, "With few seeds the draws show less than there is: five seeds have 126 different draws.")
        heading += ("mean of draws", "95 % of draws", "P(best)")
        low, high = np.percentile(ranks, [2.5, 97.5], axis=0)
        best = probability_of_best(ranks)
        for i in range(len(lines)):
            lines[i] += (f"{ranks[:, i].mean():.2f}", f"{low[i]:.2f} to {high[i]:.2f}", f"{best[i]:.1%}")
            numbers[i] |= {"low": low[i], "high": high[i], "probability_of_best": best[i]}
    return Sheet("ranks", caption, heading, tuple(lines), tuple(notes), tuple(numbers))


def variance_sheet(manifest: Manifest, rows: Sequence[Row], columns: Sequence[Column]) -> Sheet | None:
    """Return a sheet with the standard deviation over seeds beside the one over test sets; of errors, not of losses."""
    numbers, lines = [], []
    for column in (column for column in columns if not has_losses(column) and not repeats_images(column)):
        line = [column.name]
        for row in rows:
            part, values = column.at(row.coverage), run_values(row, column)
            if not values:
                line.append("–")
                continue
            seeds = float(np.std(list(values.values()), ddof=1)) if len(values) > 1 else nan
            variances = [
                test_variance(r, part.score, row) for r in part.records if r.score(part.score).risk is not None
            ]
            tests = 100 * float(np.sqrt(np.mean(variances))) if variances else nan
            line.append(f"{'–' if isnan(seeds) else f'{seeds:.2f}'} / {tests:.2f}")
            numbers.append({"column": column.name, "row": row.label, "seed_std": seeds, "test_std": tests})
        lines.append(tuple(line))
    if columns and not lines:
        return None
    return Sheet(
        "variance",
        f"Where the noise on {manifest.title} comes from: standard deviation of the risk, in points, over seeds "
        "on these test images (ddof 1) / over test sets of this size with the network fixed (by the influence "
        "function of the selective risk). More seeds make only the first part of the error smaller.",
        ("method \\ coverage", *(row.label for row in rows)),
        tuple(lines),
        numbers=tuple(numbers),
    )


def has_losses(column: Column) -> bool:
    """Tell whether its runs have losses between 0 and 1 in the place of errors."""
    origin = column.records[0].provenance.imported
    return origin is not None and origin.given == "loss"


def test_variance(record: Record, score: str, row: Row) -> float:
    return sampling_variance(record.score(score).risk or (), (row.coverage or 100) / 100, record.measures.num_images)


def gain_sheet(manifest: Manifest, columns: Sequence[Column]) -> Sheet | None:
    """Return a sheet with what each method gains over the baseline in AUGRC, and the two parts of the gain."""
    base = next((column for column in columns if column.name == manifest.baseline), None)
    if base is None:
        return None
    lines, numbers = [], []
    heading = ("method", "gain", "ranking", "classifier")
    for column in columns:
        gains = seed_gains(base, column)
        if column.name == base.name or not len(gains):
            continue
        parts = 1000 * np.column_stack([gains.sum(axis=1), gains])
        spreads = [f"±{spread:.2f}" if len(gains) > 1 else "" for spread in parts.std(0, ddof=manifest.ddof)]
        lines.append((column.name, *(f"{m:+z.2f}{s}" for m, s in zip(parts.mean(0), spreads, strict=True))))
        means = dict(zip(heading[1:], parts.mean(0), strict=True))
        numbers.append({"column": column.name, "n": len(gains), **means})
    caption = (
        f"Gain over {base.name} on {manifest.title}: fall of the AUGRC ×10³, mean±std over seeds. Ranking: what "
        f"the method's AUROC would give at the accuracy of {base.name}; classifier: the rest. They sum to the gain; "
        "a part below zero is a loss."
    )
    return Sheet("gain", caption, heading, tuple(lines), numbers=tuple(numbers)) if lines else None


def seed_gains(base: Column, column: Column) -> Array:
    """Return both parts of the gain (ranking, classifier) for each common seed; a run without an error has no AUROC."""
    return np.array(list(gains_by_seed(base, column).values()))
