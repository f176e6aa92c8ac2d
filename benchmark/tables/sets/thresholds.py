"""Outline the tables of thresholds that were set on clean validation images and carried to other images."""

from collections.abc import Sequence

from benchmark.measure.sets.formulas import NEW, SHIFTED, WITH_NEW
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.manifest import Manifest
from benchmark.tables.sets.outline import Outline
from benchmark.tables.sets.severity import severities_of
from benchmark.tables.sets.values import Seen, kept_coverage_of, kept_risk_of, rows_at

SET_ON = (
    "A threshold is set for each run on its clean validation images, so that it keeps the stated share (%) of these; "
    "of other images it keeps what is at least as confident"
)


def threshold_outlines(manifest: Manifest, seen: Seen) -> list[Outline]:
    """Return the tables of what carried thresholds keep, and of the risk of that; none where none were set."""
    coverages = [c for c in manifest.coverages if seen.has_threshold(CLEAN, c)]
    if not coverages:
        return []
    coverage = rows_at(parts_kept(seen), coverages, kept_coverage_of, manifest.decimals)
    risk = rows_at(parts_at_risk(seen), coverages, kept_risk_of, manifest.decimals)
    notes = tuple(notes_on_others(manifest, coverages))
    return [
        Outline(
            "threshold-coverage",
            f"Coverage (%) kept by thresholds carried along on {manifest.title}",
            "images at coverage",
            coverage,
            f"{SET_ON}. {sizes_sentence(seen)} No value is better than another by itself.",
            unit="coverage (%)",
            undirected=frozenset(row.label for row in coverage),
            notes=notes,
        ),
        Outline(
            "threshold-risk",
            f"Selective risk (%) at thresholds carried along on {manifest.title}",
            "images at coverage",
            risk,
            f"{SET_ON}. {sizes_sentence(seen)} A lower risk may come of keeping less: see the coverage kept.",
            notes=(*notes, "A run of which a threshold keeps nothing has no risk there."),
        ),
    ]


def parts_kept(seen: Seen) -> list[str]:
    """Return the parts whose kept coverage is shown."""
    return [CLEAN, NEW, WITH_NEW] if seen.kind == "new" else [CLEAN, *(severities_of(seen) or [SHIFTED])]


def parts_at_risk(seen: Seen) -> list[str]:
    """Return the parts whose risk is shown: of new classes alone, it is always 100 %."""
    return [name for name in parts_kept(seen) if name != NEW]


def sizes_sentence(seen: Seen) -> str:
    sizes = ", ".join(f"{name} {seen.num_images(name):,}" for name in parts_kept(seen))
    return f"Images: {sizes}."


def notes_on_others(manifest: Manifest, coverages: Sequence[float]) -> list[str]:
    """Return a note on coverages that no threshold was set for, as the task does not have them."""
    others = [f"{c:g}" for c in manifest.coverages if c not in coverages]
    return [f"No threshold was set for {', '.join(others)}: only for the coverages of the task."] if others else []
