"""Write one CSV line for each run and measure, for those who compute with the results."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from benchmark.measure.labels import name_at
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.model import Manifest, Record

HEADING = ("task", "method", "label", "score", "seed", "measure", "value", "modified")
MEASURES = ("aurc", "e_aurc", "expected_aurc", "augrc", "auroc")
CLASSIFIER = ("accuracy", "nll", "brier", "ece")
CURVES = ("risk", "percentile_risk", "percentile_coverage", "expected_risk")


def runs_csv(manifest: Manifest, columns: Sequence[Column]) -> str:
    """Return every run that a task's tables show; values are those of its record, neither scaled nor rounded."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADING)
    for column in split_by_coverage(columns):
        if not column.is_oracle:
            writer.writerows((*line, manifest["modified"]) for line in column_lines(manifest, column))
    return text.getvalue()


def column_lines(manifest: Manifest, column: Column) -> Iterator[tuple[Any, ...]]:
    label = name_at(column.label, column.coverage)
    for record in column.records:
        key = (manifest["task"], record["method"], label, column.score, record["seed"])
        yield from ((*key, measure, value) for measure, value in measured(record, column.score, manifest["coverages"]))
    for record in column.diverged if column.published else ():
        yield manifest["task"], record["method"], label, "", record["seed"], "diverged", 1


def measured(record: Record, score: str, coverages: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield all values of one score in a record: single numbers, and its curves at the table's coverages."""
    values, classifier = record["scores"][score], record["classifier"]
    yield from ((name, values[name]) for name in MEASURES if values.get(name) is not None)
    yield from ((name, classifier[name]) for name in CLASSIFIER)
    for curve in CURVES:
        if curve in values:
            yield from ((f"{curve}@{coverage:g}", values[curve][round(2 * coverage)]) for coverage in coverages)
