"""Define what is measured of an evaluation set in its parts: each kind and severity, each group, what is new."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmark.measure.measures import Curve

KINDS = ("corruptions", "shift", "new", "humans", "groups")
"""Kinds of evaluation sets."""
SHARE = 0.5
"""new: the share of the new images among all that are judged together, where nothing else is said."""
CLEAN = "clean"
"""The part that is the test images of the task, as they are."""
PART = "part"
"""The column of a stored prediction that says, by number, which part of the set an image belongs to."""
PARTS = "parts"
"""What reasons call the measures of parts, where they cannot be made."""
VERSION = 1
"""Raised when a formula of the parts changes: they are then made again from what is stored."""


@dataclass(frozen=True)
class Kept:
    """What a threshold keeps of some images. risk is None where that is nothing."""

    coverage: float
    risk: float | None


@dataclass(frozen=True)
class PartMeasures:
    """What is measured of one part of an evaluation set, or of several together, with one score."""

    num_images: int
    error: float
    """The share of wrong predictions; every image of a new class is one."""
    aurc: float
    augrc: float
    auroc: float | None = None
    """Of failures; None where there is only one kind."""
    risk: Curve | None = None
    """The selective risk at the coverages 0, 0.5, …, 100 %; only of parts taken together."""
    kept: Mapping[str, Kept] = field(default_factory=dict)
    """By the coverage that a threshold was set for, in per cent: what it keeps here. The threshold keeps that share of
    the clean validation images; in a set of groups, of all test images together."""
    kind: str = ""
    """The corruption, or the column of a group."""
    severity: int | None = None
    """0 for the clean images; None where there are no severities."""
    auroc_right: float | None = None
    """new: how well confidences tell rightly classified test images from these."""
    auroc_wrong: float | None = None
    """new: the same of wrongly classified ones."""


@dataclass(frozen=True)
class SetMeasures:
    """What is measured of an evaluation set beside the measures of all its images."""

    kind: str
    parts: Mapping[str, Mapping[str, PartMeasures]]
    """By score, then by the name of the part."""
    stored: tuple[str, ...] = ()
    """The parts of its stored predictions, in the order of the numbers in their column PART."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By score, then by coverage in per cent: the lowest confidence that is kept."""
    no_thresholds: str = ""
    """Why no threshold was set, where none was."""
    version: int = VERSION

    @property
    def is_known(self) -> bool:
        """Tell whether this code has made the measures of its parts."""
        return self.version == VERSION

    @property
    def repeats_images(self) -> bool:
        """Tell whether the same test images are in it many times, changed by kind and severity."""
        return self.kind in ("corruptions", "shift") and len(self.stored) > 1

    def part(self, score: str, name: str) -> PartMeasures | None:
        """Return the measures of a part; None where there are none, or where other code made them."""
        return self.parts.get(score, {}).get(name) if self.is_known else None
