"""Outline the tables of groups of the test images."""

from benchmark.measure.sets.formulas import BALANCED
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.manifest import Manifest
from benchmark.tables.model import Row
from benchmark.tables.sets.outline import Outline
from benchmark.tables.sets.values import (
    Seen,
    aurc_of,
    aurc_row,
    kept_coverage_of,
    kept_risk_of,
    part_row,
    rows_at,
    worst_of,
)

ALL = "all"
THRESHOLD = (
    "All groups have one threshold: at a coverage (%), that share of all test images together is kept, the most "
    "confident ones of each run"
)
WORST = "Worst group: the largest value of each run, then the mean over runs; it need not be the same group in each."
CLASSES = "Balanced: the mean over the classes of the task."


def group_outlines(manifest: Manifest, seen: Seen) -> list[Outline]:
    """Return the tables of groups: risk and coverage at a common threshold, and the AURC of each group by itself."""
    coverages = [c for c in manifest.coverages if seen.has_threshold(CLEAN, c)]
    notes, decimals = (sizes_note(seen),), manifest.decimals
    by = f"by group on {manifest.title}"
    aurc = Outline(
        "groups",
        f"AURC ×10³ {by}",
        "images",
        tuple(aurc_rows(seen, decimals)),
        f"Each group is ranked by itself. {WORST}",
        unit="AURC ×10³",
        notes=notes,
    )
    if not coverages:
        return [aurc]
    kept = tuple(row for c in coverages for row in coverage_rows(seen, c, decimals))
    return [
        Outline(
            "groups-risk",
            f"Selective risk (%) {by}",
            "images at coverage",
            tuple(row for c in coverages for row in risk_rows_at(seen, c, decimals)),
            f"{THRESHOLD}. {WORST} {CLASSES}",
            notes=notes,
        ),
        Outline(
            "groups-coverage",
            f"Coverage (%) {by}",
            "images at coverage",
            kept,
            f"{THRESHOLD}. {CLASSES} No value is better than another by itself.",
            unit="coverage (%)",
            undirected=frozenset(row.label for row in kept),
            notes=notes,
        ),
        aurc,
    ]


def groups_of(seen: Seen) -> dict[str, list[str]]:
    """Return the groups of each column, in the order of their values."""
    columns: dict[str, list[str]] = {}
    for name, part in seen.parts.items():
        if part.kind:
            columns.setdefault(part.kind, []).append(name)
    return columns


def every_group(seen: Seen) -> list[str]:
    return [name for names in groups_of(seen).values() for name in names]


def aurc_rows(seen: Seen, decimals: int) -> list[Row]:
    rows = [aurc_row(ALL, aurc_of(CLEAN), decimals)]
    for column, names in groups_of(seen).items():
        rows += [aurc_row(name, aurc_of(name), decimals) for name in names]
        rows.append(aurc_row(f"worst {column}", worst_of([aurc_of(name) for name in names]), decimals))
    return rows


def risk_rows_at(seen: Seen, coverage: float, decimals: int) -> list[Row]:
    """Return the rows of risks at one coverage."""
    values = {ALL: kept_risk_of(CLEAN, coverage)}
    for column, names in groups_of(seen).items():
        risks = {name: kept_risk_of(name, coverage) for name in names}
        values |= {**risks, f"worst {column}": worst_of([*risks.values()])}
    values[BALANCED] = kept_risk_of(BALANCED, coverage)
    return [part_row(f"{label} at {coverage:g}", value, decimals, coverage) for label, value in values.items()]


def coverage_rows(seen: Seen, coverage: float, decimals: int) -> tuple[Row, ...]:
    return rows_at([*every_group(seen), BALANCED], [coverage], kept_coverage_of, decimals)


def sizes_note(seen: Seen) -> str:
    sizes = ", ".join(f"{name} {seen.num_images(name):,}" for name in every_group(seen))
    return f"Test images: {seen.num_images(CLEAN):,}; {sizes}."
