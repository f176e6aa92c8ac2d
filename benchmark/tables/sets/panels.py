"""Choose what is drawn of the parts of an evaluation set, in figures and on the page: values by column and seed.

Means over kinds of corruptions are made for each run, before anything is said about seeds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.base.names import canonical
from benchmark.config.evaluation import FAMILIES
from benchmark.measure.sets.formulas import BALANCED, NEW, SHIFTED, WITH_NEW
from benchmark.measure.sets.parts import CLEAN, Kept, PartMeasures, SetMeasures
from benchmark.measure.statistics import Array
from benchmark.tables.columns import Column

WANTED = (90.0, 80.0)
"""Coverages in per cent at which parts are drawn, where the task has them; else those that are nearest."""
OTHER_KINDS = "other kinds"
Parts = Mapping[str, PartMeasures]
BySeed = Mapping[int, Sequence[float | None]]
Value = Callable[[Parts], float | None]


@dataclass(frozen=True)
class Panel:
    """Values of columns at a few places of an axis, such as severities."""

    title: str
    label: str
    axis: str
    """What the places are; empty where their names say it."""
    places: tuple[str, ...]
    values: Mapping[str, BySeed]
    """By column and seed, a value for each place; None where a run has none."""
    wanted: float | None = None
    """The value that was asked for."""


@dataclass(frozen=True)
class Group:
    """What becomes of a group of test images."""

    name: str
    values: Mapping[str, BySeed]
    """By column and seed, in per cent: error, selective risk and coverage at a threshold."""


def kind_of(columns: Iterable[Column]) -> str:
    """Return the kind of set that the runs of these columns were evaluated on; empty where they were not."""
    return next((each.kind for each in evaluations(columns)), "")


def reason_for_no_thresholds(columns: Iterable[Column]) -> str:
    return next((each.no_thresholds for each in evaluations(columns) if each.no_thresholds), "")


def evaluations(columns: Iterable[Column]) -> list[SetMeasures]:
    found = (record.evaluation for column in columns for record in column.records)
    return [each for each in found if each is not None and each.is_known]


def with_parts(columns: Iterable[Column]) -> list[Column]:
    """Return the columns whose runs were measured in parts, with one classifier for all coverages."""
    return [column for column in columns if not column.is_oracle and not column.parts and parts_by_seed(column)]


def parts_by_seed(column: Column) -> dict[int, Parts]:
    known = {r.seed: r.evaluation.parts for r in column.records if r.evaluation and r.evaluation.is_known}
    return {seed: parts[column.score] for seed, parts in known.items() if parts.get(column.score)}


def severities(columns: Sequence[Column]) -> list[int]:
    """Return the severities of the parts, of which 0 are the clean images; nothing where there are none."""
    parts = [part for column in columns for parts in parts_by_seed(column).values() for part in parts.values()]
    return sorted({part.severity for part in parts if part.severity is not None})


def families(columns: Sequence[Column]) -> list[str]:
    """Return the families of the kinds of corruptions, in the order in which they are always listed."""
    parts = [part for column in columns for parts in parts_by_seed(column).values() for part in parts.values()]
    found = {family_of(part.kind) for part in parts if part.kind and part.severity}
    return [family for family in (*FAMILIES, OTHER_KINDS) if family in found]


def family_of(kind: str) -> str:
    """Return the family of a kind; official sets add a word to some names, as in `jpeg compression`."""
    name = canonical(kind)
    own = (family for family, kinds in FAMILIES.items() if any(name.startswith(canonical(each)) for each in kinds))
    return next(own, OTHER_KINDS)


def wanted_coverages(columns: Sequence[Column]) -> list[float]:
    """Return the coverages below 100 %, in per cent, at which parts are drawn."""
    parts = [part for column in columns for parts in parts_by_seed(column).values() for part in parts.values()]
    known = sorted({float(coverage) for part in parts for coverage in part.kept} - {100.0})
    return list(dict.fromkeys(min(known, key=lambda c: abs(c - wanted)) for wanted in WANTED)) if known else []


def risk_panels(columns: Sequence[Column]) -> list[Panel]:
    """Return AURC by severity, of all kinds and of each family, and selective risk at a coverage."""
    levels, found = severities(columns), families(columns)
    means = [aurc_panel(columns, levels, "AURC, mean over kinds", found)]
    risks = [risk_panel(columns, levels, coverage) for coverage in wanted_coverages(columns)[-1:] or [WANTED[-1]]]
    own = [aurc_panel(columns, levels, f"AURC, {family}", [family]) for family in found]
    return [*means, *risks, *(own if len(found) > 1 else [])]


def aurc_panel(columns: Sequence[Column], levels: Sequence[int], title: str, of: Sequence[str]) -> Panel:
    values = [lambda parts, level=level: mean_aurc(parts, level, of) for level in levels]
    return Panel(title, "AURC ×10³", "severity", tuple(map(str, levels)), collect(columns, values, 1000))


def mean_aurc(parts: Parts, severity: int, of: Sequence[str]) -> float | None:
    """Return the mean AURC of the kinds of some families at a severity; 0 are the clean images."""
    if severity == 0:
        return parts[CLEAN].aurc if CLEAN in parts else None
    kinds = [part.aurc for part in parts.values() if part.severity == severity and part.kind]
    own = [part.aurc for part in parts.values() if part.severity == severity and family_of(part.kind) in of]
    return float(np.mean(own)) if kinds and own else None


def risk_panel(columns: Sequence[Column], levels: Sequence[int], coverage: float) -> Panel:
    values = [lambda parts, name=name: curve_at(parts, name, coverage) for name in map(level_name, levels)]
    title = f"selective risk at {coverage:g} %, all kinds"
    return Panel(title, "selective risk (%)", "severity", tuple(map(str, levels)), collect(columns, values))


def level_name(severity: int) -> str:
    """Return the name of the part that has all images of a severity."""
    return f"severity {severity}" if severity else CLEAN


def curve_at(parts: Parts, name: str, coverage: float) -> float | None:
    curve = parts[name].risk if name in parts else None
    return None if curve is None else curve[round(2 * coverage)]


def threshold_panels(columns: Sequence[Column]) -> list[Panel]:
    """Return what thresholds of clean validation images keep, and how often that is wrong; two for each coverage."""
    pairs = ([kept_panel(columns, coverage), wrong_panel(columns, coverage)] for coverage in wanted_coverages(columns))
    return [panel for pair in pairs for panel in pair]


def kept_panel(columns: Sequence[Column], coverage: float) -> Panel:
    axis, names = places_of(columns, NEW)
    values = [lambda parts, name=name: kept_in(parts, name, coverage).coverage for name in names.values()]
    title = f"threshold for {coverage:g} %: coverage kept"
    return Panel(title, "coverage kept (%)", axis, tuple(names), collect(columns, values), coverage)


def wrong_panel(columns: Sequence[Column], coverage: float) -> Panel:
    axis, names = places_of(columns, WITH_NEW)
    values = [lambda parts, name=name: kept_in(parts, name, coverage).risk for name in names.values()]
    title = f"threshold for {coverage:g} %: risk of what is kept"
    return Panel(title, "risk of kept images (%)", axis, tuple(names), collect(columns, values))


def kept_in(parts: Parts, name: str, coverage: float) -> Kept:
    return parts[name].kept.get(f"{coverage:g}", NOT_KNOWN) if name in parts else NOT_KNOWN


NOT_KNOWN = Kept(float("nan"), None)


def places_of(columns: Sequence[Column], new: str) -> tuple[str, dict[str, str]]:
    """Return what the axis is, and its places with the names of their parts: severities, or clean images and others."""
    if levels := severities(columns):
        return "severity", {str(level): level_name(level) for level in levels}
    other = new if kind_of(columns) == "new" else SHIFTED
    return "", {CLEAN: CLEAN, other: other}


def collect(columns: Sequence[Column], values: Sequence[Value], scale: float = 100) -> dict[str, BySeed]:
    """Return the values of each place, by column and seed."""
    return {
        column.name: {
            seed: [None if (found := value(parts)) is None else scale * found for value in values]
            for seed, parts in parts_by_seed(column).items()
        }
        for column in columns
    }


def shift_curves(column: Column) -> dict[str, dict[int, Array]]:
    """Return risk–coverage curves in per cent by part and seed: clean images, each severity, all shifted or new ones.

    Those of new classes are judged together with the clean ones, as to keep one is always an error.
    """
    by_seed = parts_by_seed(column)
    pooled = WITH_NEW if kind_of([column]) == "new" else SHIFTED
    levels = [level_name(level) for level in severities([column]) if level]
    found: dict[str, dict[int, Array]] = {}
    for name in (CLEAN, *levels, pooled):
        curves = {seed: parts[name].risk for seed, parts in by_seed.items() if name in parts}
        found[name] = {seed: 100 * np.asarray(curve) for seed, curve in curves.items() if curve is not None}
    return {name: curves for name, curves in found.items() if curves}


def groups_of(columns: Sequence[Column], coverage: float) -> list[Group]:
    """Return all test images, the mean over classes, and each group."""
    names = dict.fromkeys(name for column in columns for parts in parts_by_seed(column).values() for name in parts)
    ordered = sorted(names, key=lambda name: (name != CLEAN, name != BALANCED))
    called = {CLEAN: "all test images", BALANCED: "mean over classes"}
    return [Group(called.get(name, name), collect(columns, group_values(name, coverage))) for name in ordered]


def group_values(name: str, coverage: float) -> list[Value]:
    return [
        lambda parts: full_risk(parts, name),
        lambda parts: kept_in(parts, name, coverage).risk,
        lambda parts: kept_in(parts, name, coverage).coverage,
    ]


def full_risk(parts: Parts, name: str) -> float | None:
    """Return the risk of all images of a group: of balanced groups, that is the mean over classes."""
    if name not in parts:
        return None
    everything = parts[name].kept.get("100")
    return parts[name].error if everything is None else everything.risk


def masked(by_seed: BySeed) -> Any:
    """Return values as (seeds, places), masked where there are none: a mean is one of the runs that have a value."""
    return np.ma.masked_invalid(np.array([*by_seed.values()], dtype=np.float64))


def choose_groups(groups: Sequence[Group], most: int) -> list[Group]:
    """Return all groups if they are few, else those with the largest risks. What is no group is always there."""
    risks = {each.name: max(masked(own)[:, 1].filled(0).mean() for own in each.values.values()) for each in groups}
    kept = sorted(risks, key=lambda name: -risks[name])[:most]
    return [group for group in groups if group.name in kept or " = " not in group.name]


def worst_groups(groups: Sequence[Group]) -> dict[str, str]:
    """Return by column the name of the group whose kept images are wrong most often, in the mean over runs."""
    risks: dict[str, dict[str, float]] = {}
    for group in groups:
        for column, by_seed in group.values.items() if " = " in group.name else ():
            if (mean := masked(by_seed).mean(axis=0)[1]) is not np.ma.masked:
                risks.setdefault(column, {})[group.name] = float(mean)
    return {column: max(own, key=lambda name: own[name]) for column, own in risks.items()}
