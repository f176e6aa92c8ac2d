"""Build the tables of what errors and rejections cost together: by the best threshold, and by Chow's rule."""

from collections.abc import Callable, Sequence

from benchmark.measure.evaluate import COST_RATIOS
from benchmark.measure.measures import Costs
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.tables.build import Headings, further_table
from benchmark.tables.columns import Column, split_by_coverage
from benchmark.tables.model import Row, Table, Value

CORNER = "c_reject/c_error (%)"
THRESHOLD = (
    "Rows: what a rejection costs, in per cent of what an error costs. By the best threshold for these test images, "
    "which shows what a ranking is worth; nobody knows it beforehand."
)
CHOW = (
    "'Chow': by Chow's rule, which keeps an image if its largest class probability is at least 1 − c_reject/c_error. "
    "Where probabilities are true, no rule is better; where it costs more than the best threshold, they are not."
)
FLOOR = "Errors count with 1 − P(ŷ|x). The oracle is the floor: E min(1 − max P, c_reject/c_error), by Chow's rule."
Read = Callable[[Record, str], Costs | None]


def cost_tables(manifest: Manifest, columns: Sequence[Column]) -> list[Table]:
    """Return the tables of costs for which there are runs; posterior-expected costs where the truth is known."""
    judged = split_by_coverage([column for column in columns if not column.is_oracle])
    oracles = [column for column in columns if column.is_oracle]
    rows = [row for ratio in COST_RATIOS for row in (best_row(ratio), chow_row(ratio))]
    tables = [further_table(manifest, judged, rows, COSTS)]
    if oracles:
        expected = [expected_row(ratio) for ratio in COST_RATIOS]
        tables.append(further_table(manifest, [*judged, *oracles], expected, EXPECTED))
    return [table for table in tables if table.rows]


def costs_text(rows: Sequence[Row]) -> str:
    """Return how to read these costs."""
    return f"{THRESHOLD} {CHOW}" if any(row.measure == "chow_cost" for row in rows) else THRESHOLD


def expected_text(rows: Sequence[Row]) -> str:
    return f"{THRESHOLD} {FLOOR}"


COSTS = Headings("costs", "Cost of errors and rejections (mean, % of c_error)", CORNER, costs_text)
EXPECTED = Headings("expected_costs", "Posterior-expected cost (mean, % of c_error)", CORNER, expected_text)


def best_row(ratio: int) -> Row:
    value = cost_value(lambda record, score: record.score(score).cost, ratio)
    return Row(f"{ratio}", value, measure="cost", ratio=ratio)


def chow_row(ratio: int) -> Row:
    value = cost_value(lambda record, score: record.measures.classifier.chow_cost, ratio)
    return Row(f"{ratio} Chow", value, measure="chow_cost", ratio=ratio)


def expected_row(ratio: int) -> Row:
    value = cost_value(lambda record, score: record.score(score).expected_cost, ratio)
    return Row(f"{ratio}", value, measure="expected_cost", ratio=ratio)


def cost_value(read: Read, ratio: int) -> Value:
    """Return how a cost at a ratio is read from a record."""

    def value(record: Record, score: str) -> float | None:
        costs = read(record, score)
        return None if costs is None else costs[2 * ratio]

    return value
