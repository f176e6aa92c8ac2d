"""Write one CSV line for each run and measure, for those who compute with the results."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from benchmark.measure.evaluate import COST_RATIOS
from benchmark.measure.labels import EVERY_SCORE, each_score, name_at
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.tables.columns import Column, split_by_coverage

HEADING = ("task", "method", "label", "score", "seed", "measure", "value", "modified")
NOT_LISTED = ("top_ties",)
"""Of a score: it only warns."""
CURVES = ("risk", "percentile_risk", "percentile_coverage", "expected_risk")


def runs_csv(manifest: Manifest, columns: Sequence[Column]) -> str:
    """Return every run that a task's tables show; values are those of its record, neither scaled nor rounded."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADING)
    for column in split_by_coverage(columns):
        if not column.is_oracle:
            writer.writerows((*line, manifest.modified) for line in column_lines(manifest, column))
            for *key, part, measure, value in part_lines(manifest, column):
                writer.writerow((*key, f"{part}: {measure}", value, manifest.modified))
    return text.getvalue()


def column_lines(manifest: Manifest, column: Column) -> Iterator[tuple[Any, ...]]:
    label = name_at(column.label, column.coverage)
    for record in column.records:
        for score in (column.score, *sheet_scores(manifest, column, record)):
            key = (manifest.task, record.method, label, score, record.seed)
            yield from ((*key, measure, value) for measure, value in measured(record, score, manifest.coverages))
    for record in column.diverged if column.published else ():
        yield manifest.task, record.method, label, "", record.seed, "diverged", 1


def sheet_scores(manifest: Manifest, column: Column, record: Record) -> list[str]:
    """Return the scores of a run that have no columns, as all were asked for."""
    if not column.published or EVERY_SCORE not in manifest.scores:
        return []
    return [name for name in each_score(manifest.scores) if name in record.measures.further]


def measured(record: Record, score: str, coverages: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield all values of one score in a record: single numbers, its curves at the table's coverages, and costs."""
    measures, classifier = record.score(score), record.measures.classifier
    numbers = {name: value for name, value in vars(measures).items() if name not in NOT_LISTED} | vars(classifier)
    yield from ((name, value) for name, value in numbers.items() if isinstance(value, float))
    for name in CURVES:
        if (curve := measures.curve(name)) is not None:
            yield from ((f"{name}@{coverage:g}", curve[round(2 * coverage)]) for coverage in coverages)
    costs = {"cost": measures.cost, "expected_cost": measures.expected_cost, "chow_cost": classifier.chow_cost}
    for name, by_ratio in costs.items():
        if by_ratio is not None:
            yield from ((f"{name}_{ratio}", by_ratio[2 * ratio]) for ratio in COST_RATIOS)


def part_lines(manifest: Manifest, column: Column) -> Iterator[tuple[Any, ...]]:
    """Yield all values of the parts of an evaluation set, with the part before the measure."""
    label = name_at(column.label, column.coverage)
    for record in column.records:
        key = (manifest.task, record.method, label, column.score, record.seed)
        yield from ((*key, *line) for line in measured_parts(record, column.score, manifest.coverages))


def measured_parts(record: Record, score: str, coverages: Sequence[float]) -> Iterator[tuple[str, str, float]]:
    """Yield the name of each part, a measure and its value."""
    measured = record.evaluation
    parts = measured.parts.get(score, {}) if measured is not None and measured.is_known else {}
    for name, part in parts.items():
        numbers = ((measure, value) for measure, value in vars(part).items() if isinstance(value, float))
        yield from ((name, measure, value) for measure, value in numbers)
        if part.risk is not None:
            yield from ((name, f"risk@{coverage:g}", part.risk[round(2 * coverage)]) for coverage in coverages)
        for coverage, kept in part.kept.items():
            yield name, f"kept_coverage@{coverage}", kept.coverage
            if kept.risk is not None:
                yield name, f"kept_risk@{coverage}", kept.risk
