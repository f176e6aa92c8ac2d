"""Outline the tables of shifted images: by severity, family and kind."""

from collections.abc import Mapping, Sequence

from benchmark.base.units import counted
from benchmark.config.evaluation import FAMILIES
from benchmark.measure.sets.formulas import SHIFTED, TOGETHER
from benchmark.measure.sets.parts import CLEAN
from benchmark.store.manifest import Manifest
from benchmark.tables.model import Row, Value
from benchmark.tables.sets.outline import Outline
from benchmark.tables.sets.values import Seen, aurc_of, aurc_row, mean_of, risk_of, rows_at


def shift_outlines(manifest: Manifest, seen: Seen) -> list[Outline]:
    """Return the tables of AURC and of risk on the clean images, on the shifted ones, and on both."""
    name, by = ("severity", "by severity") if severities_of(seen) else ("shift", "of clean and shifted images")
    words = meaning(seen)
    risk = rows_at([CLEAN, *severities_of(seen), SHIFTED, TOGETHER], manifest.coverages, risk_of, manifest.decimals)
    return [
        Outline(
            name,
            f"AURC ×10³ {by} on {manifest.title}",
            "images",
            tuple(aurc_rows(seen, manifest.decimals)),
            words + means_sentence(seen),
            unit="AURC ×10³",
        ),
        Outline(
            f"{name}-risk",
            f"Selective risk (%) {by} on {manifest.title}",
            "images at coverage",
            risk,
            f"{words} Each row keeps that share (%) of its own images.",
        ),
    ]


def severities_of(seen: Seen) -> list[str]:
    """Return the names of the parts that have all images of one severity, the lowest first."""
    found = [(part.severity, name) for name, part in seen.parts.items() if part.severity and not part.kind]
    return [name for _, name in sorted(found)]


def kinds_of(seen: Seen) -> dict[str, list[str]]:
    """Return the parts of each kind, if there are severities."""
    kinds: dict[str, list[str]] = {}
    for name, part in seen.parts.items():
        if part.severity and part.kind:
            kinds.setdefault(part.kind, []).append(name)
    return kinds


def families_of(kinds: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the families with several kinds in the set; none where a kind is not one that the suite makes."""
    if not all(any(kind in members for members in FAMILIES.values()) for kind in kinds):
        return {}
    found = {family: [kind for kind in members if kind in kinds] for family, members in FAMILIES.items()}
    return {family: members for family, members in found.items() if len(members) > 1}


def aurc_rows(seen: Seen, decimals: int) -> list[Row]:
    """Return the rows: clean, severities, families, kinds, their mean, all shifted images, all with the clean ones."""
    parts = kinds_of(seen)
    kinds: dict[str, Value] = {kind: mean_of([aurc_of(name) for name in names]) for kind, names in parts.items()}
    members = families_of(parts)
    families = {f"{family} family": mean_of([kinds[kind] for kind in own]) for family, own in members.items()}
    means = {"mean over kinds": mean_of([*kinds.values()])} if len(kinds) > 1 else {}
    single: dict[str, Value] = {name: aurc_of(name) for name in (CLEAN, *severities_of(seen))}
    together: dict[str, Value] = {name: aurc_of(name) for name in (SHIFTED, TOGETHER)}
    values = {**single, **families, **kinds, **means, **together}
    return [aurc_row(label, value, decimals) for label, value in values.items()]


def meaning(seen: Seen) -> str:
    """Return which images the parts are."""
    clean, shifted = (counted(seen.num_images(name), "image") for name in (CLEAN, SHIFTED))
    severities, kinds = len(severities_of(seen)), len(kinds_of(seen))
    if not severities:
        return f"Clean: the {clean} of the test split; shifted: {shifted}; clean + shifted: all of them together."
    number = counted(kinds, "kind")
    return (
        f"Clean: the {clean} of the test split; a severity: the images of {number} together; shifted: all {shifted} of "
        f"{counted(severities, 'severity', 'severities')}; clean + shifted: each severity counts as much as the clean "
        "images do."
    )


def means_sentence(seen: Seen) -> str:
    """Return how the rows of kinds and families are made."""
    kinds = kinds_of(seen)
    if not kinds:
        return ""
    families = "; a family: the mean of its kinds" if families_of(kinds) else ""
    over = ", and their mean over kinds" if len(kinds) > 1 else ""
    return f" A kind: the mean of its severities{families}{over}; all made within each run, before the mean over runs."
