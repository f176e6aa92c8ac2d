"""Read single values of the parts of an evaluation set from records, and combine those of one run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.measure.sets.parts import PARTS, Kept, PartMeasures
from benchmark.store.record import Record
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.model import Row, Value


@dataclass(frozen=True)
class Seen:
    """What the runs of some columns say of their evaluation set. All have the same images."""

    kind: str
    parts: Mapping[str, PartMeasures]
    """One run's measures of each part, by name."""
    no_thresholds: str
    """Why no thresholds were set; empty where there are some."""

    def num_images(self, part: str) -> int:
        return self.parts[part].num_images

    def has_threshold(self, part: str, coverage: float) -> bool:
        return f"{coverage:g}" in self.parts[part].kept


def see(columns: Sequence[Column]) -> Seen | None:
    """Return what the runs of some columns say of their evaluation set; None where no run can say anything."""
    records = [record for column in split_by_coverage(columns) for record in column.records]
    found = [record.evaluation for record in records if record.evaluation and record.evaluation.is_known]
    if not found:
        return None
    parts: dict[str, PartMeasures] = {}
    for own in (own for each in found for own in each.parts.values()):
        for name, part in own.items():
            parts.setdefault(name, part)
    return Seen(found[0].kind, parts, next((each.no_thresholds for each in found if each.no_thresholds), ""))


def of_part(name: str, read: Callable[[PartMeasures], float | None]) -> Value:
    """Return how one part of a run is read."""

    def value(record: Record, score: str) -> float | None:
        part = record.evaluation.part(score, name) if record.evaluation else None
        return None if part is None else read(part)

    return value


def aurc_of(name: str) -> Value:
    return of_part(name, lambda part: part.aurc)


def risk_of(name: str, coverage: float) -> Value:
    """Return how the selective risk of a part at a coverage of its own images is read."""
    return of_part(name, lambda part: None if part.risk is None else part.risk[round(2 * coverage)])


def kept_of(name: str, coverage: float, read: Callable[[Kept], float | None]) -> Value:
    """Return how that is read which a threshold keeps of a part."""

    def value(part: PartMeasures) -> float | None:
        kept = part.kept.get(f"{coverage:g}")
        return None if kept is None else read(kept)

    return of_part(name, value)


def kept_coverage_of(name: str, coverage: float) -> Value:
    return kept_of(name, coverage, lambda kept: kept.coverage)


def kept_risk_of(name: str, coverage: float) -> Value:
    return kept_of(name, coverage, lambda kept: kept.risk)


def mean_of(values: Sequence[Value]) -> Value:
    """Return the mean of several values of one run, if it has all of them."""

    def value(record: Record, score: str) -> float | None:
        found = [each(record, score) for each in values]
        numbers = [number for number in found if number is not None]
        return float(np.mean(numbers)) if numbers and len(numbers) == len(found) else None

    return value


def worst_of(values: Sequence[Value]) -> Value:
    """Return the largest of several values of one run. A group of which nothing is kept has none."""

    def value(record: Record, score: str) -> float | None:
        found = [each(record, score) for each in values]
        return max((number for number in found if number is not None), default=None)

    return value


def part_row(label: str, value: Value, decimals: int, coverage: float | None = None, scale: float = 100.0) -> Row:
    """Return a row about parts of a set, which lower values are better in."""
    return Row(label, value, scale=scale, decimals=decimals, coverage=coverage, measure=PARTS)


def aurc_row(label: str, value: Value, decimals: int) -> Row:
    return part_row(label, value, decimals, scale=1000)


def rows_at(
    names: Sequence[str], coverages: Sequence[float], read: Callable[[str, float], Value], decimals: int
) -> tuple[Row, ...]:
    """Return a row for each coverage and part."""
    return tuple(part_row(f"{name} at {c:g}", read(name, c), decimals, c) for c in coverages for name in names)
