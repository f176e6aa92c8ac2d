"""Data sets decoded once: a folder of memory-mapped pixels, and a manifest that says what they are.

<cache>/<source>-<key>/manifest.json     written last: where it is, the cache is whole
                       train.pixels      uint8, image after image; test and val likewise
                       train-labels.npy
                       train-sizes.npy   heights and widths, where images differ in size
                       train-names.txt   the files they come from, one a line, where there are files
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from benchmark.config import DataConfig
from benchmark.errors import MissingData, UserError
from benchmark.files import Damaged, read_json, read_sealed, say, sweep, write_json
from benchmark.sources import Images, Loaded, Ragged, check_labels, describe, get_source
from benchmark.sources._files import CACHE_TAG

VERSION = 1
CHUNK_BYTES = 2**24
ALWAYS_VERIFIED = 2**30
"""Up to this size all checksums are computed whenever a cache is opened; beyond, when a file's date has changed."""
MANIFEST, STAMP = "manifest.json", "verified.json"
TAG_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Folders:
    """Where data sets lie, and where they are cached."""

    data: Path
    cache: Path


class Unusable(Exception):
    """There is no cache, or none that can be believed; the text says what is wrong with the one there is."""


@dataclass(frozen=True)
class SplitFiles:
    """The files of one split."""

    folder: Path
    name: str

    @property
    def pixels(self) -> Path:
        return self.folder / f"{self.name}.pixels"

    @property
    def labels(self) -> Path:
        return self.folder / f"{self.name}-labels.npy"

    @property
    def sizes(self) -> Path:
        return self.folder / f"{self.name}-sizes.npy"

    @property
    def names(self) -> Path:
        """For people, who know images by their files; line n names image n."""
        return self.folder / f"{self.name}-names.txt"


def find(
    config: DataConfig, folders: Folders, *, build: bool = True, thorough: bool = False, tell: Tell = say
) -> tuple[Loaded, str]:
    """The images of a source and their hash, from the cache; it is made, or made again, where need be."""
    from benchmark.cache_build import Builder  # which needs this module

    source, folder = get_source(config), folders.cache / name_of(config)
    if build:
        for place in (folder, partial_of(folder)):
            sweep(place)
    try:
        return read_cache(folder, fingerprint(config, folders), thorough=thorough, measured=not config.mean)
    except Unusable as problem:
        if not build:
            raise MissingData(f"'{config.source}' is not cached yet: python run_all.py prepare does that") from None
        if str(problem):
            tell(f"{config.source}: {problem}; making it again")
    originals = replace(source.load(config, folders.data), num_classes=describe(config).num_classes)
    check_labels(originals, config)
    mark = fingerprint(config, folders)
    with locked(folder, tell):
        with suppress(Unusable):
            return read_cache(folder, mark, measured=not config.mean)  # another process has made it meanwhile
        Builder(folder, config.source, originals, mark, tell).build()
    try:
        return read_cache(folder, mark)
    except Unusable as problem:
        raise UserError(f"{problem}, though it was just made; try again, and look at the disk if it stays so") from None


def partial_of(folder: Path) -> Path:
    """Where a cache grows until it is whole."""
    return folder.with_name(f"{folder.name}.partial")


def name_of(config: DataConfig) -> str:
    """One cache for each way in which the images of a source can be read."""
    size = {} if config.cache_size else {"image_size": config.image_size}
    settings = {name: getattr(config, name) for name in get_source(config).SETTINGS if name != "channels"} | size
    if config.path:
        settings["path"] = str(Path(config.path).resolve())
    text = json.dumps([VERSION, config.source, config.channels_read, settings], sort_keys=True)
    return f"{config.source}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def fingerprint(config: DataConfig, folders: Folders) -> str | None:
    """What would tell that the originals have changed; None if they are not there (any more).

    Own files count with their dates, official ones without, so that copies can share a cache.
    """
    digest, found = hashlib.sha256(), False
    for path in get_source(config).files(config, folders.data):
        status = path.stat() if path.exists() else None
        dated = status is not None and (path.is_dir() or bool(config.path))
        facts = (status and (0 if path.is_dir() else status.st_size), status and dated and status.st_mtime_ns)
        line = f"{path.parent.name}/{path.name} {facts}\n"
        digest.update(line.encode(errors="surrogateescape"))  # names need not be UTF-8
        found |= status is not None
    return digest.hexdigest() if found else None


@contextmanager
def locked(folder: Path, tell: Tell) -> Iterator[None]:
    """One process at a time builds a cache; the lock of one that was killed is free."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tag = folder.parent / CACHE_TAG
        if not tag.exists():
            tag.write_text(f"{TAG_SIGNATURE}\n# Decoded images; may be removed, and will then be made again.\n")
        lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"waiting for another process that makes '{folder}'")
            lock.acquire()
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        yield
    finally:
        lock.release()


def is_there(config: DataConfig, folders: Folders) -> bool:
    """Whether all originals of a source are at hand."""
    return all(path.exists() for path in get_source(config).files(config, folders.data))


def cannot_write(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot write the cache '{folder}': {error.strerror or error}; make room, or name another folder with "
        "--cache-dir; the same command then goes on"
    )


def read_cache(folder: Path, mark: str | None, *, thorough: bool = False, measured: bool = False) -> tuple[Loaded, str]:
    """What the manifest describes, checked. `mark` is the fingerprint of the originals where these are at hand.

    `measured` says that mean and std are asked for, which caches of an earlier version do not have.
    """
    if not folder.is_dir():
        raise Unusable
    try:
        manifest = read_sealed(folder / MANIFEST, folder.name, is_whole) or {}
    except Damaged as why:
        raise Unusable(f"the manifest in '{folder}' is damaged ({why})") from None
    if not is_whole(manifest):
        raise Unusable(f"the manifest in '{folder}' is damaged (missing, or of another version)")
    if mark is not None and mark != manifest["fingerprint"]:
        raise Unusable(f"the files have changed since they were cached in '{folder}'")
    if measured and "measured" not in manifest:
        raise Unusable(f"the cache '{folder}' has no mean and std yet")
    parts = {name: SplitFiles(folder, name) for name in manifest["splits"]}
    try:
        splits = {name: mapped(parts[name], entry) for name, entry in manifest["splits"].items()}
        stamp = [[files.name, files.pixels.stat().st_mtime_ns] for files in parts.values()]
        total = sum(entry["bytes"] for entry in manifest["splits"].values())
        if thorough or total <= ALWAYS_VERIFIED or read_json(folder / STAMP) != {"dates": stamp}:
            for name, entry in manifest["splits"].items():
                verify(parts[name], entry, splits[name])
            if total > ALWAYS_VERIFIED:
                with suppress(OSError):  # a cache that may only be read is verified each time
                    write_json(folder / STAMP, {"dates": stamp})
    except (FileNotFoundError, ValueError) as error:
        raise Unusable(f"the cache '{folder}' is damaged ({error})") from None
    mean, std = (tuple(manifest.get("measured", {}).get(name, ())) for name in ("mean", "std"))
    classes, val = manifest["num_classes"], splits.get("val")
    loaded = Loaded(splits["train"], splits["test"], val=val, num_classes=classes, mean=mean, std=std)
    return loaded, manifest["sha256"]


def is_whole(manifest: dict[str, Any]) -> bool:
    described = manifest.get("version") == VERSION and "num_classes" in manifest and "fingerprint" in manifest
    return described and digest_of(manifest.get("splits")) == manifest.get("sha256")


def digest_of(splits: Any) -> str:
    """Identifies the data: two machines with equal hashes trained and tested on the same images."""
    return hashlib.sha256(json.dumps(splits, sort_keys=True).encode()).hexdigest()


def mapped(files: SplitFiles, entry: dict[str, Any]) -> Images:
    """A split without reading its pixels."""
    labels = checked_array(files.labels, entry["labels_sha256"])
    pixels = np.memmap(files.pixels, np.uint8, mode="r")
    if len(pixels) != entry["bytes"]:
        raise ValueError(f"{files.pixels.name} has {len(pixels)} bytes, expected {entry['bytes']}")
    flat = pixels.view(np.ndarray)
    if entry["sizes_sha256"] is None:
        return Images.of(flat.reshape(entry["count"], *entry["shape"]), labels)
    return Images.of(Ragged(flat, checked_array(files.sizes, entry["sizes_sha256"]), entry["shape"][0]), labels)


def checked_array(path: Path, sha256: str) -> NDArray[np.int64]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the checksum of {path.name} is wrong")
    return np.asarray(np.load(path, allow_pickle=False))


def verify(files: SplitFiles, entry: dict[str, Any], images: Images) -> None:
    """Every chunk of the pixels against its checksum."""
    starts = starts_of(images)
    with files.pixels.open("rb") as file:
        bounds = chunk_bounds(starts)
        wrong = sum(
            hashlib.sha256(file.read(int(starts[end] - starts[first]))).hexdigest() != expected
            for (first, end), expected in zip(bounds, entry["chunks"], strict=True)
        )
    if wrong:
        raise ValueError(f"the checksum of {files.pixels.name} is wrong in {wrong} of {len(bounds)} parts")


def starts_of(images: Images) -> NDArray[np.int64]:
    """Where each image begins in the file of pixels, and where the last one ends."""
    if isinstance(images.pictures, Ragged):
        return images.pictures.starts
    array = np.asarray(images.pictures)
    return np.asarray(np.arange(len(array) + 1) * array[0].nbytes)


def chunk_bounds(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Consecutive images, about CHUNK_BYTES of them at a time."""
    cuts = np.searchsorted(starts[:-1], np.arange(0, starts[-1], CHUNK_BYTES))
    firsts = np.unique(cuts[cuts < len(starts) - 1]).tolist()
    return list(zip(firsts, [*firsts[1:], len(starts) - 1], strict=True))
