"""Read the cache of a data set: a folder of memory-mapped pixels, and a manifest that describes them.

<cache>/<source>-<key>/manifest.json     written last: where it exists, the cache is complete
                       train.pixels      uint8 or floats, image after image; test and val likewise
                       train-labels.npy
                       train-sizes.npy   heights and widths, where images differ in size
                       train-names.txt   the file of each image, one per line, where there are files
"""

import hashlib
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.files import BLANK, Damaged, read_json, read_sealed, write_json, write_sealed
from benchmark.config.task import DataConfig
from benchmark.data.images import Images, Loaded, Ragged
from benchmark.data.sources import get_source, source_version

VERSION = 1
CHUNK_BYTES = 2**24
ALWAYS_VERIFIED = 2**30
"""Bytes. Up to this size all checksums are verified at each opening; above it, only if a file's date has changed."""
MANIFEST, STAMP = "manifest.json", "verified.json"


@dataclass(frozen=True)
class Folders:
    """The folder of the data sets, and the folder of their caches."""

    data: Path
    cache: Path


class Unusable(Exception):
    """A cache that is missing or cannot be trusted; the text says what is wrong, and is empty if it is missing."""


class SplitFiles:
    """The files of one split."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.pixels = folder / f"{name}.pixels"
        self.labels = folder / f"{name}-labels.npy"
        self.sizes = folder / f"{name}-sizes.npy"
        self.names = folder / f"{name}-names.txt"
        """Line n names the file of image n; for people, programs do not read it."""


def cache_name(config: DataConfig) -> str:
    """Return the folder name of a cache: one for each way in which the images of a source can be read.

    A user's own source has another cache whenever its file does something else.
    """
    size = {} if config.cache_size else {"image_size": config.image_size}
    settings = {name: getattr(config, name) for name in get_source(config).SETTINGS if name != "channels"} | size
    if config.path:
        settings["path"] = str(Path(config.path).resolve())
    described = [VERSION, config.source, config.channels_read, settings]
    if version := source_version(config.source):
        described.append(version)
    text = json.dumps(described, sort_keys=True)
    return f"{config.source}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def fingerprint_originals(config: DataConfig, folders: Folders) -> str | None:
    """Return a hash that changes when the original files change; None if there are none (any more).

    It includes the dates of users' own files, but not those of official ones, so that copies can share a cache.
    """
    digest, any_exists = hashlib.sha256(), False
    for path in get_source(config).files(config, folders.data):
        facts: tuple[int | None, int | None] = (None, None)
        if path.exists():
            status, any_exists = path.stat(), True
            dated = path.is_dir() or bool(config.path or source_version(config.source))
            facts = (0 if path.is_dir() else status.st_size, dated and status.st_mtime_ns)
        line = f"{path.parent.name}/{path.name} {facts}\n"
        digest.update(line.encode(errors="surrogateescape"))  # names need not be UTF-8
    return digest.hexdigest() if any_exists else None


def has_originals(config: DataConfig, folders: Folders) -> bool:
    """Tell whether all original files of a source exist."""
    return all(path.exists() for path in get_source(config).files(config, folders.data))


def read_cache(
    folder: Path, fingerprint: str | None, *, thorough: bool = False, need_mean: bool = False
) -> tuple[Loaded, str]:
    """Return the images in a cache and their hash; raise `Unusable` if anything is wrong.

    `fingerprint` is that of the originals, None where these are missing. Caches of an earlier version have no mean.
    """
    if not folder.is_dir():
        raise Unusable
    try:
        manifest = read_sealed(folder / MANIFEST, folder.name, is_whole) or {}
    except Damaged as why:
        raise Unusable(f"the manifest in '{folder}' is damaged ({why})") from None
    if not is_whole(manifest):
        raise Unusable(f"the manifest in '{folder}' is damaged (missing, or of another version)")
    if fingerprint is not None and fingerprint != manifest["fingerprint"]:
        raise Unusable(f"the files have changed since they were cached in '{folder}'")
    if need_mean and "measured" not in manifest:
        raise Unusable(f"the cache '{folder}' has no mean and std yet")
    parts = {name: SplitFiles(folder, name) for name in manifest["splits"]}
    try:
        splits = {name: map_split(parts[name], entry) for name, entry in manifest["splits"].items()}
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
    train, test, alone = splits.get("train", splits["test"]), splits["test"], "train" not in splits
    classes, val = manifest["num_classes"], splits.get("val")
    loaded = Loaded(train, test, val=val, num_classes=classes, mean=mean, std=std, test_alone=alone)
    return loaded, manifest["sha256"]


def write_manifest(folder: Path, place: str, facts: dict[str, Any], splits: dict[str, Any]) -> None:
    """Write the manifest of a complete cache; `place` is the name that its folder will have."""
    manifest = {"version": VERSION, **facts, "sha256": hash_splits(splits), "splits": splits, "seal": BLANK}
    write_sealed(folder / MANIFEST, manifest, place)


def is_whole(manifest: dict[str, Any]) -> bool:
    """Tell whether a manifest is of this version, has all its parts, and the right hash of its splits."""
    described = manifest.get("version") == VERSION and "num_classes" in manifest and "fingerprint" in manifest
    return described and hash_splits(manifest.get("splits")) == manifest.get("sha256")


def hash_splits(splits: Any) -> str:
    """Return the hash of the data: two machines with equal hashes trained and tested on the same images."""
    return hashlib.sha256(json.dumps(splits, sort_keys=True).encode()).hexdigest()


def map_split(files: SplitFiles, entry: dict[str, Any]) -> Images:
    """Return the images of a split as a mapped file, without reading its pixels."""
    labels = read_checked_array(files.labels, entry["labels_sha256"])
    pixels = np.memmap(files.pixels, np.uint8, mode="r")
    if len(pixels) != entry["bytes"]:
        raise ValueError(f"{files.pixels.name} has {len(pixels)} bytes, expected {entry['bytes']}")
    flat = pixels.view(np.ndarray)
    if entry["sizes_sha256"] is None:
        return Images.of(flat.view(pixel_type(entry)).reshape(entry["count"], *entry["shape"]), labels)
    return Images.of(Ragged(flat, read_checked_array(files.sizes, entry["sizes_sha256"]), entry["shape"][0]), labels)


def pixel_type(entry: dict[str, Any]) -> np.dtype[Any]:
    """Return the type of the pixels of a split; the entry names it where they are floats."""
    name: str = entry.get("dtype", "uint8")
    return np.dtype(name)


def read_checked_array(path: Path, sha256: str) -> NDArray[np.int64]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the checksum of {path.name} is wrong")
    return np.asarray(np.load(path, allow_pickle=False))


def verify(files: SplitFiles, entry: dict[str, Any], images: Images) -> None:
    """Compare every chunk of the pixels with its checksum; raise ValueError if one differs."""
    sizes = images.pictures.sizes if isinstance(images.pictures, Ragged) else None
    starts = image_starts(len(images), entry["shape"], sizes, pixel_type(entry).itemsize)
    with files.pixels.open("rb") as file:
        bounds, wrong = chunk_bounds(starts), 0
        for (first, end), expected in zip(bounds, entry["chunks"], strict=True):
            pixels = file.read(int(starts[end] - starts[first]))
            wrong += hashlib.sha256(pixels).hexdigest() != expected
    if wrong:
        raise ValueError(f"the checksum of {files.pixels.name} is wrong in {wrong} of {len(bounds)} parts")


def image_starts(count: int, shape: list[int], sizes: NDArray[np.int64] | None, itemsize: int = 1) -> NDArray[np.int64]:
    """Return where each image begins in the file of pixels, and where the last one ends."""
    lengths = np.full(count, math.prod(shape) * itemsize) if sizes is None else shape[0] * sizes.prod(axis=1)
    return np.concatenate([[0], np.cumsum(lengths)])


def chunk_bounds(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the images into chunks of about CHUNK_BYTES; return the first image and the end of each chunk."""
    cuts = np.searchsorted(starts[:-1], np.arange(0, starts[-1], CHUNK_BYTES))
    firsts = np.unique(cuts[cuts < len(starts) - 1]).tolist()
    return list(zip(firsts, [*firsts[1:], len(starts) - 1], strict=True))
