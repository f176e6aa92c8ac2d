"""Define the files of a selector's folder, and read them with all checks. Nothing in them is executed."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmark.base.errors import UserError, brief
from benchmark.base.files import HOST, read_if_there, say, sync, write_atomically
from benchmark.base.schema import build
from benchmark.selector.extra import needed
from benchmark.selector.model import Description
from benchmark.store.record import newer_version

VERSION = 1
SELECTOR, WEIGHTS, GRAPH, CARD, EXAMPLE = "selector.json", "model.safetensors", "model.onnx", "README.md", "example.py"
DESCRIPTION = "description"
"""Names the description of the networks among the metadata of the weights."""


@dataclass(frozen=True)
class Realised:
    """What a threshold did on the test images."""

    num_images: int
    coverage: float
    risk: float | None
    """None where nothing was kept."""


@dataclass(frozen=True)
class Guarantee:
    """What is promised of a threshold, for images that are drawn as the held-out ones were."""

    threshold: float
    """It holds for this threshold alone."""
    delta: float
    """The probability that it is broken, over the draw of the held-out images."""
    num_images: int
    """Held-out images."""
    bound: str
    """How it was found."""
    risk: float | None = None
    """The largest share of errors among what is kept; None where a coverage was wanted."""
    certified_coverage: float | None = None
    """The share of the held-out images that it keeps, where a risk was wanted."""
    coverage: float | None = None
    """The wanted coverage."""
    low: float | None = None
    """Where a coverage was wanted: it lies between this and `high`."""
    high: float | None = None
    held_out: str = ""
    """Which images were held out."""
    realised: Realised | None = None


@dataclass(frozen=True)
class Content:
    """What selector.json says. The threshold may be changed by hand, and nothing else."""

    version: int
    score: str
    threshold: float
    guarantee: Guarantee | None
    network: Description
    origin: dict[str, Any]
    """Where it comes from: task, method, seed, hashes of training, code and data, commit, versions of libraries."""
    classes: tuple[str, ...] = ()
    """Their names, in the order of their numbers."""
    sha256: dict[str, Any] = field(default_factory=dict)
    """By name of a file."""


def weights_bytes(tensors: Mapping[str, Tensor], description: Description) -> bytes:
    """Return the content of the file of the weights, which has the networks' description among its metadata."""
    save = needed("safetensors.torch").save
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    content: bytes = save(plain, {DESCRIPTION: json.dumps(asdict(description))})
    return content


def described_in(content: bytes) -> Any:
    """Return the description among the metadata of the weights."""
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"][DESCRIPTION])


def selector_bytes(content: Content) -> bytes:
    plain = {"version": content.version, "classes": content.classes, **asdict(content)}
    return (json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def refuse_existing(folder: Path) -> None:
    """Raise UserError where something is in the place of a new folder."""
    if os.path.lexists(folder):
        raise UserError(f"'{folder}' is there already, and no selector is replaced; name another folder")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder whole or not at all. Raise UserError where there is one already."""
    refuse_existing(folder)
    temporary = folder.with_name(f".{folder.name}.{HOST}-{os.getpid()}.tmp")
    try:
        for name, content in files.items():
            write_atomically(temporary / name, content)
        read_selector(temporary)
        refuse_existing(folder)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync(folder.parent)


def read_selector(folder: Path) -> tuple[Content, dict[str, Tensor]]:
    """Return what a folder has: its description and its tensors. Raise UserError for anything that is not as it was."""
    plain = read_plain(folder / SELECTOR)
    check_version(plain, folder)
    names = plain.pop("classes", None)
    content = build(Content, plain, str(folder / SELECTOR))
    content = replace(content, classes=checked_classes(names, content, folder / SELECTOR))
    weights = {name: checked_file(folder / name, content) for name in (WEIGHTS, GRAPH)}[WEIGHTS]
    try:
        as_exported = described_in(weights)
        tensors: dict[str, Tensor] = needed("safetensors.torch").load(weights)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"'{folder / WEIGHTS}' cannot be read ({brief(error)}); export the selector again") from None
    if as_exported != plain["network"] or content.score != content.network.score:
        raise UserError(
            f"'{folder / SELECTOR}': its network or its score was changed by hand; only the threshold may be: export "
            "the selector again"
        )
    return held_to_threshold(content, folder), tensors


def read_plain(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    text = read_if_there(path)
    if text is None:
        raise UserError(f"'{path.parent}' is no selector: it has no {path.name}; make one with the command export")
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise UserError(f"'{path}' is no JSON ({brief(error)}); export the selector again") from None
    if not isinstance(plain, dict):
        raise UserError(f"'{path}' must have a JSON object; export the selector again")
    return plain


def check_version(plain: Mapping[str, Any], folder: Path) -> None:
    version = plain.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UserError(f"'{folder / SELECTOR}': version must be a whole number from 1; export the selector again")
    if version > VERSION:
        raise newer_version("selector", str(folder), version, VERSION)


def checked_classes(names: Any, content: Content, path: Path) -> tuple[str, ...]:
    """Return the names of the classes. Raise UserError where they are not as many as the network's outputs."""
    if not content.network.members:
        raise UserError(f"'{path}': its network has no members; export the selector again")
    count = content.network.num_classes
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise UserError(f"'{path}': classes must be a list with the names of all {count:,} classes")
    return tuple(names)


def checked_file(path: Path, content: Content) -> bytes:
    """Return the content of a file of the folder. Raise UserError where it is not what was exported."""
    found = read_if_there(path)
    if found is None:
        raise UserError(f"'{path.parent}' has no {path.name}; export the selector again")
    if sha256_of(found) != content.sha256.get(path.name):
        raise UserError(f"'{path}' is not the file that was exported: its checksum is wrong; export the selector again")
    return found


def held_to_threshold(content: Content, folder: Path) -> Content:
    """Return the content, without its guarantee where that holds for another threshold; say so then."""
    guarantee = content.guarantee
    if guarantee is None or guarantee.threshold == content.threshold:
        return content
    say(
        f"warning: '{folder / SELECTOR}' has the threshold {content.threshold:g}, and its guarantee holds for "
        f"{guarantee.threshold:g} alone: nothing is guaranteed"
    )
    return replace(content, guarantee=None)
