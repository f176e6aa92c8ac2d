"""Certify the thresholds of finished runs, and look at what they do to test images."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

from benchmark.certificates.held_out import HeldOut, Source
from benchmark.measure.catalogue import FinishedRun, Unavailable
from benchmark.measure.guarantees import (
    FIXED_SEQUENCE,
    SGR,
    Certificate,
    CoverageCertificate,
    certify,
    certify_coverage,
)
from benchmark.measure.sets.formulas import Judged, is_right_or_wrong
from benchmark.measure.sets.parts import Kept
from benchmark.measure.statistics import LEVEL
from benchmark.store.record import Record
from benchmark.tables.columns import Column

OpenRun = Callable[[Record, Column], FinishedRun]
"""Returns the stored predictions of a run of a column."""


@dataclass(frozen=True)
class Wanted:
    """What is to be guaranteed, and how."""

    risks: tuple[float, ...] = ()
    """Largest selective risks, as fractions."""
    coverages: tuple[float, ...] = ()
    """Least coverages, as fractions."""
    delta: float = 0.05
    bound: str = FIXED_SEQUENCE
    source: Source = field(default_factory=Source)


@dataclass(frozen=True)
class CertifiedRun:
    """The thresholds of one run with one score, and the images behind them."""

    record: Record
    score: str
    held_out: HeldOut
    at_risk: Mapping[float, Certificate]
    """By the risk that was wanted."""
    at_coverage: Mapping[float, CoverageCertificate]
    """By the coverage that was wanted."""

    def realised(self, threshold: float | None) -> Kept:
        """Return what a threshold keeps of the images that are tested."""
        return kept_by(threshold, self.held_out.tested)

    def is_broken(self, risk: float) -> bool:
        """Tell whether more of the kept test images are wrong than was guaranteed. They are a sample, too."""
        found = self.realised(self.at_risk[risk].threshold).risk
        return found is not None and found > risk

    def is_clearly_broken(self, risk: float) -> bool:
        """Tell whether so many errors among the kept test images are improbable where the guarantee holds."""
        found = self.realised(self.at_risk[risk].threshold)
        kept = round(found.coverage * len(self.held_out.tested.loss))
        if found.risk is None or not is_right_or_wrong(self.held_out.tested.loss):
            return False
        return bool(binom.sf(round(found.risk * kept) - 1, kept, risk) < LEVEL)


def kept_by(threshold: float | None, images: Judged) -> Kept:
    """Return the coverage and the risk of what a threshold keeps; None keeps nothing."""
    kept = np.zeros(len(images.loss), bool) if threshold is None else images.confidence >= threshold
    return Kept(float(kept.mean()), float(images.loss[kept].mean()) if kept.any() else None)


@dataclass(frozen=True)
class CertifiedColumn:
    """The runs of a column of the table."""

    column: Column
    runs: tuple[CertifiedRun, ...]
    reason: str = ""
    """Why there are none."""

    @property
    def name(self) -> str:
        return self.column.name


def certify_columns(columns: Sequence[Column], open_run: OpenRun, wanted: Wanted) -> Iterator[CertifiedColumn]:
    """Certify the runs of each column. One that cannot be certified says why."""
    for column in columns:
        runs, reasons = [], [column.reason]
        for record in column.records:
            try:
                runs.append(certify_run(record, open_run(record, column), column.score, wanted))
            except Unavailable as why:
                reasons.append(str(why))
        yield CertifiedColumn(column, tuple(runs), "" if runs else next(filter(None, reversed(reasons)), ""))


def certify_run(record: Record, run: FinishedRun, score: str, wanted: Wanted) -> CertifiedRun:
    """Certify the thresholds of one run with one score. Raise Unavailable where that cannot be."""
    held_out = wanted.source.of(record, run, score)
    images, delta = held_out.certifying, wanted.delta
    if wanted.bound == SGR and not is_right_or_wrong(images.loss):
        raise Unavailable("sgr is a bound for right and wrong predictions, and its losses lie between")
    return CertifiedRun(
        record,
        score,
        held_out,
        {risk: certify(images.confidence, images.loss, risk, delta, wanted.bound) for risk in wanted.risks},
        {coverage: certify_coverage(images.confidence, coverage, delta) for coverage in wanted.coverages},
    )
