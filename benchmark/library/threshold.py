"""Certify the threshold of one run, and say what is promised of it and what it does to test images."""

from dataclasses import dataclass, replace

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.certificates.runs import CertifiedRun, certify_run
from benchmark.library.certify import wanted_of
from benchmark.library.finished_run import FoundRun
from benchmark.library.guarantee_options import ExportOptions
from benchmark.measure.catalogue import Unavailable
from benchmark.measure.guarantees import Certificate, CoverageCertificate
from benchmark.selector.card import Tested
from benchmark.selector.files import Guarantee, Realised


@dataclass(frozen=True)
class Threshold:
    """A threshold that was certified for a run."""

    value: float
    certificate: Certificate | CoverageCertificate
    run: CertifiedRun


def certified_threshold(run: FoundRun, score: str, options: ExportOptions) -> Threshold:
    """Return the threshold that keeps to what was asked for. Raise UserError where none does."""
    risks, coverages = ([] if each is None else [each] for each in (options.risk, options.coverage))
    try:
        certified = certify_run(run.record, run.finished, score, wanted_of(options, risks, coverages))
    except Unavailable as why:
        raise UserError(f"{run.name}, {score}: no threshold can be certified: {why}") from None
    found: list[Certificate | CoverageCertificate] = [*certified.at_risk.values(), *certified.at_coverage.values()]
    (certificate,) = found
    if certificate.threshold is None or not np.isfinite(certificate.threshold):
        raise UserError(f"{run.name}, {score}: {why_no_threshold(certificate)}")
    return Threshold(certificate.threshold, certificate, certified)


def why_no_threshold(certificate: Certificate | CoverageCertificate) -> str:
    """Return why there is no threshold, and what it would take."""
    images = counted(certificate.num_images, "held-out image")
    if isinstance(certificate, CoverageCertificate):
        return f"of {images}, a coverage of {100 * certificate.coverage:g} % keeps everything; ask for less"
    return (
        f"no threshold keeps the risk at {100 * certificate.risk:g} % with probability "
        f"{100 * certificate.confidence:.6g} % by {images}: it takes at least {certificate.needed:,} that are kept "
        "without an error; allow a larger --risk or a lower --confidence, or hold out more images "
        "(data.val, --from-test)"
    )


def guarantee_of(threshold: Threshold) -> Guarantee:
    """Return what is promised of a threshold."""
    each, held_out = threshold.certificate, threshold.run.held_out
    kept = threshold.run.realised(threshold.value)
    guarantee = Guarantee(
        threshold.value,
        round(1 - each.confidence, 12),
        each.num_images,
        each.bound if isinstance(each, Certificate) else "order statistic",
        held_out=held_out.origin,
        realised=Realised(len(held_out.tested.loss), kept.coverage, kept.risk),
    )
    if isinstance(each, CoverageCertificate):
        return replace(guarantee, coverage=each.coverage, low=each.low, high=each.high)
    return replace(guarantee, risk=each.risk, certified_coverage=each.coverage)


def tested(threshold: Threshold) -> Tested:
    """Return what the threshold does to the images that are tested."""
    held_out = threshold.run.held_out
    kept = held_out.tested.confidence >= threshold.value
    return Tested(held_out.tested_images.labels, held_out.tested.loss > 0, kept)
