"""Settings of evaluation sets: what a trained classifier is tried on beyond the test images of its task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from benchmark.base.limits import Within
from benchmark.base.names import canonical, is_plain
from benchmark.base.schema import check, later, unidentified
from benchmark.config.ingredients import check_owners

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "noise": ("gaussian noise", "shot noise", "impulse noise", "speckle noise"),
    "blur": ("gaussian blur", "defocus blur", "glass blur", "motion blur", "zoom blur"),
    "weather": ("fog", "brightness"),
    "digital": ("contrast", "saturate", "jpeg", "pixelate", "elastic"),
}
"""Kinds of corruptions that the suite makes, by family."""
CORRUPTIONS = tuple(kind for kinds in FAMILIES.values() for kind in kinds)
SEVERITIES = (1, 2, 3, 4, 5)
KINDS: Mapping[str, str] = {
    "corruptions": "the test images under corruptions that the suite makes",
    "shift": "other images of the same classes",
    "new": "images of classes that the classifier cannot know; to accept one is an error",
    "humans": "the test images, with what people call them",
    "groups": "the test images by groups",
}
"""Kinds of evaluation sets, with a line about each."""
SHARE = 0.5


@dataclass(frozen=True)
class EvaluationConfig:
    """An evaluation set of a task."""

    kind: Literal["corruptions", "shift", "new", "humans", "groups"]
    name: str = unidentified("")
    """What its tables and folders are called; empty: after its images, file or kind."""
    images: str = unidentified("")
    """shift, new: another task by name or file, whose test images these are; a folder (class folders, the layout of
    CIFAR-10-C, ImageNet-C or one of its relatives); or an npz file. new, empty: the classes that data.leave_out keeps
    from training. What the images are, their hash says."""
    file: str = unidentified("")
    """humans: label counts, (images, classes). groups: a column for each grouping, a row for each test image."""
    kinds: tuple[str, ...] = later(())
    """corruptions: only these."""
    severities: tuple[Annotated[int, Within(1, 5, "there are five")], ...] = later(())
    """corruptions: only these."""
    share: float = later(SHARE)
    """new: the share of the new images among all that are judged together."""
    columns: tuple[str, ...] = later(())
    """groups: the columns, such as attributes of celeba; empty: all of the file."""

    def __post_init__(self) -> None:
        check(not self.name or is_plain(self.name), f"name '{self.name}' cannot be the name of a folder")
        owners = {
            "images": ("shift", "new"),
            "file": ("humans", "groups"),
            "kinds": ("corruptions",),
            "severities": ("corruptions",),
            "share": ("new",),
            "columns": ("groups",),
        }
        check_owners(self, owners, by="kind")
        check(self.kind != "shift" or bool(self.images), "a set of kind 'shift' needs images: a task, folder or file")
        check(self.kind != "humans" or bool(self.file), "a set of kind 'humans' needs a file of label counts")
        check(
            self.kind != "groups" or bool(self.file or self.columns),
            "a set of kind 'groups' needs columns (attributes) or a file",
        )
        check(0 < self.share < 1, f"share must lie between 0 and 1, got {self.share:g}")
        for kind in self.kinds:
            check(canonical(kind) in map(canonical, CORRUPTIONS), f"kinds: unknown corruption '{kind}'")
