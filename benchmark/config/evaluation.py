"""Settings of evaluation sets: what a trained classifier is tried on beyond the test images of its task."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from benchmark.base.errors import UserError
from benchmark.base.limits import Within, shown
from benchmark.base.names import canonical, is_plain, match_name
from benchmark.base.schema import build, check, later, split_list, unidentified
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
    "new": "images of classes that the classifier cannot know, where to accept one is an error; `new` alone: those of "
    "data.leave_out",
    "humans": "the test images, with what people call them",
    "groups": "the test images by groups",
}
"""Kinds of evaluation sets, with a line about each."""
NONE = "none"
"""Among the names of sets: no set at all."""
MOST_LETTERS = 100
"""Of the name of a set, which is part of the names of folders."""
SHARE = 0.5
FILES = (".npz", ".npy", ".csv")
"""How names of files with images, counts or groups end."""
USAGE: Mapping[str, str] = {
    "corruptions": "corruptions or corruptions=KIND,KIND",
    "shift": "shift=TASK|FOLDER|FILE.npz",
    "new": "new=TASK|FOLDER|FILE.npz",
    "humans": "humans=FILE.npz",
    "groups": "groups=ATTRIBUTE,ATTRIBUTE or groups=FILE.csv",
}
"""How a set of each kind is written on the command line."""


@dataclass(frozen=True)
class EvaluationConfig:
    """An evaluation set of a task."""

    kind: Literal["corruptions", "shift", "new", "humans", "groups"]
    name: str = unidentified("")
    """What its tables and folders are called; empty: after its images, else after its kind."""
    images: str = unidentified("")
    """shift, new: another task by name or file, whose test images these are; a folder (class folders, the layout of
    CIFAR-10-C, ImageNet-C or one of its relatives); or an npz file. new, empty: the classes that data.leave_out keeps
    from training. What the images are, their hash says."""
    file: str = unidentified("")
    """humans: label counts, (images, classes). groups: a column for each grouping, a row for each test image."""
    kinds: tuple[str, ...] = unidentified(())
    """corruptions: only these, in any order. The hash of the set says which."""
    severities: tuple[Annotated[int, Within(1, 5, "there are five")], ...] = unidentified(())
    """corruptions: only these."""
    share: float = later(SHARE)
    """new: the share of the new images among all that are judged together."""
    columns: tuple[str, ...] = unidentified(())
    """groups: the columns, such as attributes of celeba; empty: all of the file. What they say, the hash covers."""

    def __post_init__(self) -> None:
        check_name(self.name, self.kind)
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
            match_name(kind, CORRUPTIONS, "corruption")

    @property
    def used_kinds(self) -> tuple[str, ...]:
        """Return the kinds of corruptions that are made, in the order of the families."""
        wanted = {canonical(kind) for kind in self.kinds or CORRUPTIONS}
        return tuple(kind for kind in CORRUPTIONS if canonical(kind) in wanted)

    @property
    def used_severities(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.severities))) or SEVERITIES


def check_name(name: str, kind: str) -> None:
    """Raise a ValueError where a name cannot be that of a folder, or means another set on the command line."""
    plain = is_plain(name) and len(name) <= MOST_LETTERS
    check(not name or plain, f"name {shown(name)} cannot be the name of a folder")
    is_other = canonical(name) in (NONE, *KINDS) and canonical(name) != kind
    check(not is_other, f"name '{name}' means something else on the command line; choose another")


def set_name(config: EvaluationConfig) -> str:
    """Return what a set is called: by its name, else by its images, as new ones if they are, else by its kind."""
    path = PurePath(config.images)
    called = path.stem if path.suffix in (".toml", *FILES) else path.name
    plain = re.sub(r"[^\w.+-]+", "-", called).lstrip(".+-")
    of_images = f"{config.kind}-{plain}" if plain and config.kind == "new" else plain
    return config.name or of_images[:MOST_LETTERS] or config.kind


def check_names(configs: Iterable[EvaluationConfig]) -> None:
    """Raise a ValueError where two sets would share a folder."""
    seen: set[str] = set()
    for name in map(set_name, configs):
        check(name.lower() not in seen, f"evaluate: a set named twice: '{name}'; give one of them another name")
        seen.add(name.lower())


def read_evaluation(text: str) -> EvaluationConfig:
    """Return the set that a text of the command line means, such as `corruptions`, `new=svhn` or `groups=Male`."""
    word, equals, value = (part.strip() for part in text.partition("="))
    kind = match_name(word, KINDS, "kind of evaluation set")
    if equals and not value:
        raise UserError(f"--evaluate {text}: expected {USAGE[kind]}")
    return build(EvaluationConfig, {"kind": kind, **(meant(kind, value) if value else {})}, f"--evaluate {text}")


def meant(kind: str, value: str) -> dict[str, Any]:
    """Return the field that a text after the name of a kind stands for."""
    if kind == "corruptions":
        return {"kinds": [match_name(name, CORRUPTIONS, "corruption") for name in split_list(value)]}
    if kind == "groups" and not looks_like_file(value):
        return {"columns": value}
    return {"file" if kind in ("humans", "groups") else "images": value}


def looks_like_file(name: str) -> bool:
    """Tell whether a name can only be that of a file or folder."""
    return "/" in name or name.endswith((".toml", *FILES))
