"""Build the sheets of intervals over test images: of each measure, and of its difference from the reference."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmark.measure.bootstrap import bootstrap_test, interval
from benchmark.measure.statistics import LEVEL, TESTS
from benchmark.store.manifest import Manifest
from benchmark.tables.build import MEASURES, risk_rows, run_values
from benchmark.tables.captions import INTERVAL
from benchmark.tables.columns import Column
from benchmark.tables.model import Row, Sheet

NONE = "–"


def interval_sheets(manifest: Manifest, columns: Sequence[Column]) -> list[Sheet]:
    """Return the sheets, if test images were resampled."""
    drawn = [column for column in columns if column.draws]
    if not drawn:
        return []
    rows = [row for row in (*coverage_rows(manifest), *MEASURES) if any(row.key in c.draws for c in drawn)]
    reference = next((column for column in drawn if column.name == manifest.reference), None)
    sheets = [intervals_sheet(manifest, rows, drawn)]
    return [*sheets, differences_sheet(manifest, rows, drawn, reference)] if reference and len(drawn) > 1 else sheets


def coverage_rows(manifest: Manifest) -> list[Row]:
    return [replace(row, label=f"risk at {row.label} (%)") for row in risk_rows(manifest, "risk")]


def intervals_sheet(manifest: Manifest, rows: Sequence[Row], columns: Sequence[Column]) -> Sheet:
    """Return a sheet with a line for each measure: its mean over the runs of each column, and its interval."""
    lines, numbers = [], []
    for row in rows:
        line = [row.label]
        for column in columns:
            values = list(run_values(row, column).values())
            ends = ends_of(row, column)
            line.append(text_of(float(np.mean(values)), ends, row) if values and ends else NONE)
            if values and ends:
                number = {"column": column.name, "row": row.label, "mean": float(np.mean(values))}
                numbers.append(number | {"low": ends[0], "high": ends[1]})
        lines.append(tuple(line))
    caption = (
        f"How far the measures on {manifest.title} depend on the test images: mean over runs {INTERVAL}. The runs are "
        "fixed, so this is not how far other trainings would differ."
    )
    heading = ("measure", *(column.name for column in columns))
    return Sheet("intervals", caption, heading, tuple(lines), numbers=tuple(numbers))


def differences_sheet(manifest: Manifest, rows: Sequence[Row], columns: Sequence[Column], reference: Column) -> Sheet:
    """Return a sheet with what each column differs from the reference on the same draws."""
    others = [column for column in columns if column is not reference]
    lines, numbers = [], []
    for row in rows:
        line = [row.label]
        ours = run_values(row, reference)
        for column in others:
            theirs = run_values(row, column)
            if not ours or not theirs or row.key not in column.draws or row.key not in reference.draws:
                line.append(NONE)
                continue
            a, b = (row.scale * each.draws[row.key] for each in (reference, column))
            difference = float(np.mean(list(theirs.values())) - np.mean(list(ours.values())))
            p, ends = bootstrap_test(a, b).p, interval(b - a)
            line.append(text_of(difference, ends, row, sign="+") + ("*" if p < LEVEL else ""))
            number = {"column": column.name, "row": row.label, "difference": difference}
            numbers.append(number | {"low": ends[0], "high": ends[1], "p": p})
        lines.append(tuple(line))
    caption = (
        f"Differences from {reference.name} on the same test images of {manifest.title} {INTERVAL}; * p below "
        f"{LEVEL:g} ({TESTS['bootstrap']}, each cell by itself, no correction)."
    )
    heading = ("measure", *(column.name for column in others))
    return Sheet("image-differences", caption, heading, tuple(lines), numbers=tuple(numbers))


def ends_of(row: Row, column: Column) -> tuple[float, float] | None:
    """Return the ends of the interval of a measure; None where it was not resampled."""
    draws = column.draws.get(row.key)
    if draws is None or np.isnan(draws).all():
        return None
    return interval(row.scale * draws)


def text_of(value: float, ends: tuple[float, float], row: Row, sign: str = "") -> str:
    shown = f"{sign}z.{row.decimals}f" if sign else f".{row.decimals}f"
    low, high = (format(end, shown) for end in ends)
    return f"{value:{shown}} [{low}, {high}]"
