"""Certify a threshold for each class or group: the guarantees hold for all of them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.certificates.runs import CertifiedRun, kept_by
from benchmark.measure.catalogue import Unavailable
from benchmark.measure.evaluate import predicted_classes
from benchmark.measure.guarantees import Certificate, certify
from benchmark.measure.prediction import Evidence
from benchmark.measure.sets.parts import Kept

CLASS = "class"
"""Groups are the classes that are predicted: the true ones are not known when a threshold is applied."""


@dataclass(frozen=True)
class CertifiedGroup:
    """The threshold of one group in one run."""

    certificate: Certificate
    realised: Kept
    tested: int
    """Test images of the group."""


def certify_groups(run: CertifiedRun, by: str, risk: float, delta: float, bound: str) -> dict[str, CertifiedGroup]:
    """Return the threshold of each group: each has an equal share of δ, so that all hold with probability 1 − δ."""
    certifying, tested = (
        groups_of(images, by) for images in (run.held_out.certifying_images, run.held_out.tested_images)
    )
    names = group_names(run.held_out.certifying_images, certifying, by)
    found = {}
    for name in names:
        own, others = run.held_out.certifying.of(certifying == name), run.held_out.tested.of(tested == name)
        certificate = certify(own.confidence, own.loss, risk, delta / len(names), bound)
        found[str(name)] = CertifiedGroup(
            certificate,
            kept_by(certificate.threshold, others) if len(others.loss) else Kept(0.0, None),
            len(others.loss),
        )
    return found


def groups_of(images: Evidence, by: str) -> NDArray[Any]:
    """Return the group of each image. Raise Unavailable where the run does not say."""
    if by == CLASS:
        return predicted_classes(images)
    if by not in images.groups:
        known = ", ".join([CLASS, *images.groups])
        raise Unavailable(f"nothing says which '{by}' its images are; known: {known}")
    return np.asarray(images.groups[by])


def group_names(images: Evidence, groups: NDArray[Any], by: str) -> Sequence[Any]:
    """Return the groups that there are: all classes, or those that the certifying images have."""
    if by == CLASS and images.has_logits:
        return range(images.prediction.logits.shape[1])
    return [*np.unique(groups)]


def all_groups(groups: Mapping[str, CertifiedGroup]) -> Kept:
    """Return the coverage and the risk of all test images, each kept by the threshold of its group."""
    total = sum(group.tested for group in groups.values())
    kept = sum(group.realised.coverage * group.tested for group in groups.values())
    wrong = sum((group.realised.risk or 0.0) * group.realised.coverage * group.tested for group in groups.values())
    return Kept(kept / total if total else 0.0, wrong / kept if kept else None)
