"""Check the published tables against themselves: recompute ranks, w/t/l, bold and trials from their cells."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, comb

import numpy as np
from scipy.stats import rankdata

from benchmark.base.units import counted
from benchmark.paper.table_files import PublishedTable, load_tables
from benchmark.paper.values import ROUNDING, Figures, PublishedCell, published_figures, published_summaries
from benchmark.tables.model import Sheet

RULES = ("min", "average", "dense")
TEST_IMAGES = {"CIFAR-100": 10_000}
"""Of data sets with so few images that the steps of a mean at low coverage show in print."""
HELD_OUT = 1000
"""Test images that the public code does not test on."""
TRIALS = 5
"""Behind most published cells."""
MOST_LISTED = 3
COARSE = (10, 20, 30, 40, 50)
"""Coverages at which so few images are kept that the printed figures show the number of trials."""
COARSE_TEXT = ", ".join(map(str, COARSE))


@dataclass(frozen=True)
class Mismatch:
    """One place where a published table contradicts itself."""

    table: str
    what: str


def figures_of(table: PublishedTable) -> Figures:
    return published_figures()[table.published]


def audit() -> tuple[list[Sheet], list[Mismatch]]:
    """Return the recomputed figures as sheets, and all mismatches with what is printed."""
    tables = sorted(load_tables(["all"]), key=lambda table: list(published_figures()).index(table.published))
    sheets = [count_sheet(), rank_sheet(), rank_difference_sheet(), wtl_sheet(tables), image_sheet(), repeated_sheet()]
    by_table = (wtl_mismatches, bold_mismatches, underline_mismatches, marker_mismatches, trial_mismatches)
    return sheets, [*rank_mismatches(), *(each for find in by_table for each in find(tables))]


def count_sheet() -> Sheet:
    rows: list[tuple[str, ...]] = []
    for name, figures in published_figures().items():
        markers = Counter(cell.marker for cell in figures.cells.values())
        shape = f"{len(figures.coverages)} × {len(figures.columns)}"
        rows.append((name, shape, str(len(figures.cells)), str(markers["better"]), str(markers["worse"])))
    rows.append(("all", "", *(str(sum(int(row[index]) for row in rows)) for index in (2, 3, 4))))
    heading = ("table", "coverages × columns", "cells", "•", "◦")
    return Sheet("cells", "The published cells and markers.", heading, tuple(rows))


def recomputed_ranks(figures: Figures, rule: str) -> dict[str, str]:
    """Return the ranks by printed mean (1 = lowest), averaged over the rows."""
    means = [[figures.cells[coverage, column].mean for column in figures.columns] for coverage in figures.coverages]
    ranks = np.mean([rankdata(row, method=rule) for row in means], axis=0)
    return {column: f"{rank:.2f}" for column, rank in zip(figures.columns, ranks, strict=True)}


def rank_differences(rule: str) -> list[tuple[str, str, str, str]]:
    """Return table, column, recomputed and printed rank where the two ranks differ."""
    rows = []
    for (table, column), summary in published_summaries().items():
        rank = recomputed_ranks(published_figures()[table], rule)[column]
        if rank != summary.avg_rank:
            rows.append((table, column, rank, summary.avg_rank))
    return rows


def rank_sheet() -> Sheet:
    """Show how many printed ranks each rule for ties reproduces."""
    wrong = [Counter(table for table, *_ in rank_differences(rule)) for rule in RULES]
    rows = []
    for name, count in Counter(table for table, _ in published_summaries()).items():
        right = [f"{count - each[name]}/{count}" for each in wrong]
        rows.append((name, *right, tied_rows(published_figures()[name])))
    caption = "(a) Average ranks: columns whose printed rank is reproduced, by the rule for ties in a row."
    return Sheet("ranks", caption, ("table", *RULES, "tied rows"), tuple(rows))


def tied_rows(figures: Figures) -> str:
    texts = []
    for coverage in figures.coverages:
        counts = Counter(figures.cells[coverage, column].mean for column in figures.columns)
        pairs = sum(comb(count, 2) for count in counts.values())
        if pairs:
            texts.append(f"{coverage}" + (f" ({pairs} pairs)" if pairs > 1 else ""))
    return ", ".join(texts) or "none"


def rank_difference_sheet() -> Sheet:
    rows = [(rule, *row) for rule in RULES for row in rank_differences(rule)]
    caption = "(a) Where a rule gives another average rank than is printed."
    return Sheet("rank differences", caption, ("rule", "table", "column", "recomputed", "printed"), tuple(rows))


def rank_mismatches() -> list[Mismatch]:
    """Return the printed ranks that even the rule that fits best does not reproduce."""
    return [
        Mismatch(table, f"average rank of {column} is printed {printed}, recomputed {recomputed}")
        for table, column, recomputed, printed in rank_differences("min")
    ]


def wtl_from_markers(figures: Figures, column: str) -> tuple[int, int, int]:
    markers = Counter(figures.cells[coverage, column].marker for coverage in figures.coverages)
    return markers["better"], markers[""], markers["worse"]


def marked_tables(tables: Sequence[PublishedTable]) -> list[PublishedTable]:
    return [table for table in tables if "markers" in table.shows]


def wtl_sheet(tables: Sequence[PublishedTable]) -> Sheet:
    rows = []
    for table in marked_tables(tables):
        for column in (column for column in table.columns if column != table.reference):
            counted = "/".join(map(str, wtl_from_markers(figures_of(table), column)))
            printed = published_summaries().get((table.published, column))
            remark = wtl_remark(counted, printed.wtl, len(figures_of(table).coverages)) if printed else "not printed"
            rows.append((table.published, column, counted, printed.wtl if printed else "–", remark))
    caption = "(b) w/t/l counted from the printed markers."
    return Sheet("w/t/l", caption, ("table", "column", "from markers", "printed", ""), tuple(rows))


def wtl_remark(counted: str, printed: str, num_rows: int) -> str:
    if counted == printed:
        return "agrees"
    total = sum(map(int, re.findall(r"\d+", printed)))
    remarks = [f"sums to {total}, the table has {num_rows} rows"] if total != num_rows else ["other counts"]
    return "; ".join([*remarks, "not of the form w/t/l"] if not re.fullmatch(r"\d+/\d+/\d+", printed) else remarks)


def wtl_mismatches(tables: Sequence[PublishedTable]) -> list[Mismatch]:
    return [
        Mismatch(table, f"w/t/l of {column} is printed {printed}, its markers give {counted} ({remark})")
        for table, column, counted, printed, remark in wtl_sheet(tables).rows
        if remark not in ("agrees", "not printed")
    ]


def bold_mismatches(tables: Sequence[PublishedTable]) -> Iterator[Mismatch]:
    """Yield rows in which bold is not the minimum of the row, or of its group where the table has groups."""
    for table in tables:
        figures = figures_of(table)
        for coverage, group in product(figures.coverages, table.groups or (table.columns,)):
            row = {column: figures.cells[coverage, column] for column in group}
            least = min(cell.mean for cell in row.values())
            bold = ", ".join(f"{c} ({cell.mean:.2f})" for c, cell in row.items() if cell.bold)
            best = ", ".join(f"{c} ({cell.mean:.2f})" for c, cell in row.items() if cell.mean == least)
            if bold != best:
                yield Mismatch(figures.name, f"coverage {coverage}: bold is {bold}, the minimum is {best}")


def underline_mismatches(tables: Sequence[PublishedTable]) -> Iterator[Mismatch]:
    for table in tables:
        figures = figures_of(table)
        for coverage in figures.coverages if "second" in table.shows else ():
            row = [figures.cells[coverage, column] for column in table.columns]
            second = sorted({cell.mean for cell in row})[1]
            if any(cell.underlined != (cell.mean == second) for cell in row):
                yield Mismatch(figures.name, f"coverage {coverage}: underlined is not the second smallest")


def separated(lower: PublishedCell, higher: PublishedCell, trials: int) -> bool:
    """Tell whether all runs of one cell must lie below all runs of the other.

    n values of population standard deviation s lie within s·√(n−1) of their mean; rounding is allowed for.
    """
    reach = np.sqrt(trials - 1)
    top = lower.mean + ROUNDING + reach * (lower.std + ROUNDING)
    return bool(top < higher.mean - ROUNDING - reach * (higher.std + ROUNDING))


def marker_mismatches(tables: Sequence[PublishedTable]) -> Iterator[Mismatch]:
    """Yield cells without a marker that every test would have marked."""
    for table in marked_tables(tables):
        figures = figures_of(table)
        for (coverage, column), cell in figures.cells.items():
            ours = figures.cells[coverage, table.reference]
            apart = separated(ours, cell, table.trials) or separated(cell, ours, table.trials)
            if not cell.marker and apart:
                pair = f"{ours.mean:.2f}±{ours.std:.2f} against {cell.mean:.2f}±{cell.std:.2f}"
                yield Mismatch(figures.name, f"coverage {coverage}: {column} ({pair}) has no marker")


def fits(cell: PublishedCell, trials: int, images: int) -> bool:
    """Tell whether some numbers of wrong images, one per trial, have this printed mean and population std."""
    step = 100 / images
    centre, reach = round(cell.mean / step), ceil((cell.std + ROUNDING) / step * trials**0.5) + 1
    sums = {(0, 0)}  # of the distances from the centre, and of their squares
    for _ in range(trials):
        sums = {(s + d, q + d * d) for s, q in sums for d in range(max(-reach, -centre), reach + 1)}
    means = ((s / trials, q / trials) for s, q in sums)
    return any(
        is_printed(step * (centre + m), cell.mean) and is_printed(step * max(0.0, q - m * m) ** 0.5, cell.std)
        for m, q in means
    )


def is_printed(value: float, figure: float) -> bool:
    return abs(value - figure) <= ROUNDING + 1e-9


def fits_two_throughout(cells: Mapping[int, PublishedCell], test_images: int) -> bool:
    """Tell whether two trials fit at every coarse coverage; with five trials this is very unlikely."""
    return all(fits(cells[coverage], 2, test_images * coverage // 100) for coverage in COARSE)


def trial_mismatches(tables: Sequence[PublishedTable]) -> Iterator[Mismatch]:
    """Yield figures that the stated number of trials cannot give, and columns of them that two trials always fit."""
    least = min(COARSE)
    for table in tables:
        figures = figures_of(table)
        images = TEST_IMAGES.get(figures.dataset, 0)
        for column in table.columns if images else ():
            cells = coarse_cells(figures, column)
            if fits(cells[least], table.trials, images * least // 100):
                continue
            printed = f"{column} {cells[least].mean:.2f}±{cells[least].std:.2f}"
            yield Mismatch(figures.name, f"coverage {least}: {printed}: no {table.trials} trials have this")
            if fits_two_throughout(cells, images):
                what = f"{column}: 2 trials fit its means and stds at each of the coverages {COARSE_TEXT}"
                yield Mismatch(figures.name, f"{what}, {table.trials} are captioned")


def equal_columns() -> list[list[tuple[Figures, str]]]:
    """Group the columns of all tables, as table and name, by their figures: a group is equal at every coverage."""
    groups: dict[tuple[tuple[int, float, float], ...], list[tuple[Figures, str]]] = {}
    for figures in published_figures().values():
        for column in figures.columns:
            values = tuple((c, figures.cells[c, column].mean, figures.cells[c, column].std) for c in figures.coverages)
            groups.setdefault(values, []).append((figures, column))
    return list(groups.values())


def coarse_cells(figures: Figures, column: str) -> dict[int, PublishedCell]:
    return {coverage: figures.cells[coverage, column] for coverage in COARSE}


def image_sheet() -> Sheet:
    """Count the columns that are possible with the whole test set, and with the part that the public code uses."""
    rows, counts, least = [], [], min(COARSE)
    for dataset, whole in TEST_IMAGES.items():
        shown = [same[0] for same in equal_columns() if same[0][0].dataset == dataset]
        columns = {f"{figures.name}: {column}": coarse_cells(figures, column) for figures, column in shown}
        judged = {name: cells for name, cells in columns.items() if not fits_two_throughout(cells, whole)}
        for images in (whole, whole - HELD_OUT):
            out = [name for name, cells in judged.items() if not fits(cells[least], TRIALS, images * least // 100)]
            counts.append(len(judged) - len(out))
            exceptions = ", ".join(out) if len(out) <= MOST_LISTED else counted(len(out), "column")
            rows.append((dataset, f"{images:,}", f"{counts[-1]}/{len(judged)}", exceptions))
    caption = (
        f"(c) Columns whose mean and std at coverage {least} some {TRIALS} trials can have, by the number of test "
        f"images. Columns that 2 trials fit at all of {COARSE_TEXT} are left out."
    )
    heading = ("data", "test images", "possible", "impossible")
    note = f"The {HELD_OUT:,} test images that the public code leaves out were not left out here."
    return Sheet("test images", caption, heading, tuple(rows), (note,) if counts[0] > 2 * counts[1] else ())


def repeated_sheet() -> Sheet:
    groups = [same for same in equal_columns() if len(same) > 1]
    rows = [(str(len(same)), "; ".join(f"{figures.name}: {column}" for figures, column in same)) for same in groups]
    return Sheet("repeated", "Columns whose figures are the same throughout.", ("tables", "columns"), tuple(rows))
