"""Collect what was certified for a task, and read values of a run from it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark.certificates.groups import CertifiedGroup
from benchmark.certificates.runs import CertifiedColumn, CertifiedRun, Wanted
from benchmark.measure.guarantees import Certificate, CoverageCertificate
from benchmark.measure.sets.parts import Kept
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.tables.model import Value

Key = tuple[str, str, int, str]
Read = Callable[[CertifiedRun], float | None]
"""How a number of a certified run is read."""


def key_of(record: Record, score: str) -> Key:
    return record.method, record.job, record.seed, score


@dataclass(frozen=True)
class Certified:
    """All that was certified for one task."""

    manifest: Manifest
    wanted: Wanted
    columns: tuple[CertifiedColumn, ...]
    shifted: Mapping[str, Mapping[Key, Mapping[float, Kept]]] = field(default_factory=dict)
    """By evaluation set: what the thresholds of each run keep of it, by risk."""
    by: str = ""
    groups: Mapping[str, Mapping[float, Sequence[Mapping[str, CertifiedGroup]]]] = field(default_factory=dict)
    """By column and risk: what was certified by group, one for each run."""

    @property
    def runs(self) -> dict[Key, CertifiedRun]:
        return {key_of(run.record, run.score): run for column in self.columns for run in column.runs}

    @property
    def chance(self) -> str:
        return f"{1 - self.wanted.delta:.6g}"

    def value(self, read: Read) -> Value:
        """Return how a value of a certified run is read from its record; None where the run was not certified."""
        runs = self.runs

        def value(record: Record, score: str) -> float | None:
            run = runs.get(key_of(record, score))
            return None if run is None else read(run)

        return value


def percent(number: float) -> str:
    return f"{100 * number:.10g}"


def lines_of(shown: Certified) -> Iterator[dict[str, Any]]:
    """Yield a line for each run and guarantee; shares are fractions."""
    for column in shown.columns:
        for run in column.runs:
            for kind, found in (("risk", run.at_risk), ("coverage", run.at_coverage)):
                for wanted, each in found.items():
                    yield line_of(shown, column, run, {"guarantee": kind, "wanted": wanted}, each)


def line_of(
    shown: Certified,
    column: CertifiedColumn,
    run: CertifiedRun,
    what: Mapping[str, Any],
    each: Certificate | CoverageCertificate,
) -> dict[str, Any]:
    realised = run.realised(each.threshold)
    line = {
        "task": shown.manifest.task,
        "column": column.name,
        "method": run.record.method,
        "score": run.score,
        "seed": run.record.seed,
        **what,
        "confidence": each.confidence,
        "threshold": each.threshold,
        "held_out": each.num_images,
        "kept": each.kept,
        "realised_coverage": realised.coverage,
        "realised_risk": realised.risk,
    }
    if isinstance(each, CoverageCertificate):
        return line | {"low": each.low, "high": each.high}
    certified = {"bound": each.bound, "errors": each.errors, "certified_coverage": each.coverage}
    return line | certified | {"broken": run.is_broken(each.risk)}
