"""Making a cache, chunk by chunk.

It grows in a folder that ends in .partial, with a journal of the checksum of every chunk. So a build that was killed
goes on where it stopped, and of a damaged cache only the damaged chunks are made again.
"""

import hashlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from benchmark.ahead import ahead, cores, processes
from benchmark.cache import (
    MANIFEST,
    VERSION,
    SplitFiles,
    Tell,
    cannot_write,
    checked_array,
    chunk_bounds,
    digest_of,
    is_whole,
    partial_of,
)
from benchmark.errors import UserError
from benchmark.files import BLANK, read_json, sync_folder, write_atomically, write_json, write_sealed
from benchmark.sources import Images, Loaded
from benchmark.sources._files import ImageFiles
from benchmark.units import text_from_bytes

JOURNAL, ORIGIN = "journal.txt", "origin.json"
WORTH_PROCESSES = 1000
"""Files from which on it pays to start processes that decode them."""
MEASURED_AT_A_TIME = 1000

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True)
class InMemory:
    """Some rows of an array, which may be a mapped file."""

    array: NDArray[Any]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, end: int) -> "InMemory":
        return InMemory(self.array, self.rows[start:end])


Originals = ImageFiles | InMemory
Journal = dict[tuple[str, int], str]
"""Split and number of a chunk → its checksum."""


@dataclass(frozen=True)
class Split:
    """A split to be cached: its images in their order, their sizes if they differ, and where each goes."""

    files: SplitFiles
    originals: Originals
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    shape: list[int]

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """First image and end of each chunk."""
        return chunk_bounds(self.starts)

    def place(self, index: int) -> tuple[int, int]:
        """Where a chunk begins in the file, and how long it is."""
        first, end = self.bounds[index]
        return int(self.starts[first]), int(self.starts[end] - self.starts[first])


@dataclass
class Builder:
    """Writes the cache `folder` of the originals that have this fingerprint."""

    folder: Path
    source: str
    loaded: Loaded
    mark: str | None
    tell: Tell
    pool: ProcessPoolExecutor | None = None

    @property
    def partial(self) -> Path:
        return partial_of(self.folder)

    def build(self) -> None:
        files = [images.pictures for images in self.loaded.splits().values() if isinstance(images.pictures, ImageFiles)]
        many = sum(map(len, files)) >= WORTH_PROCESSES
        try:
            with processes() if many else nullcontext() as self.pool:
                self.write()
        except OSError as error:
            raise cannot_write(self.folder, error) from None
        except BrokenProcessPool:
            raise UserError("a process that decodes images died, perhaps for lack of memory; try again") from None

    def write(self) -> None:
        self.begin()
        journal = read_journal(self.partial / JOURNAL)
        splits = [self.measured(name, images, journal) for name, images in self.loaded.splits().items()]
        good = {split.files.name: good_chunks(split, journal) for split in splits}
        self.check_space(splits, good)
        self.finish({split.files.name: self.write_split(split, good[split.files.name]) for split in splits})

    def begin(self) -> None:
        """Keep of earlier attempts, and of a cache that turned out damaged, what was made from the same originals."""
        if self.folder.is_dir():
            old = read_json(self.folder / MANIFEST) or {}
            shutil.rmtree(self.partial, ignore_errors=True)
            self.folder.rename(self.partial)
            (self.partial / MANIFEST).unlink(missing_ok=True)
            if is_whole(old) and old["fingerprint"] == self.mark:
                for name, entry in old["splits"].items():
                    self.note(f"{name}-sizes", 0, entry["sizes_sha256"])
                    for index, checksum in enumerate(entry["chunks"]):
                        self.note(name, index, checksum)
                write_json(self.partial / ORIGIN, self.origin())
        if read_json(self.partial / ORIGIN) != self.origin():
            shutil.rmtree(self.partial, ignore_errors=True)
            self.partial.mkdir(parents=True)
            write_json(self.partial / ORIGIN, self.origin())

    def note(self, name: str, index: int, checksum: str | None) -> None:
        with (self.partial / JOURNAL).open("a") as journal:
            journal.write(f"{name} {index} {checksum}\n")

    def origin(self) -> dict[str, Any]:
        return {"version": VERSION, "fingerprint": self.mark}

    def measured(self, name: str, images: Images, journal: Journal) -> Split:
        """Where every image will lie, before any is decoded."""
        files, pictures = SplitFiles(self.partial, name), images.pictures
        if not isinstance(pictures, ImageFiles):
            array = np.asarray(pictures)
            starts = np.arange(len(images) + 1) * array[0].nbytes
            return Split(files, InMemory(array, images.rows), images.labels, None, starts, list(array.shape[1:]))
        chosen = pictures.take(images.rows)
        if chosen.keeps_shape:
            sizes = self.measured_sizes(files, chosen, journal)
            starts = np.concatenate([[0], np.cumsum(chosen.channels * sizes.prod(axis=1))])
            return Split(files, chosen, images.labels, sizes, starts, [chosen.channels, 0, 0])
        shape = [chosen.channels, chosen.size, chosen.size]
        return Split(files, chosen, images.labels, None, np.arange(len(chosen) + 1) * int(np.prod(shape)), shape)

    def measured_sizes(self, files: SplitFiles, chosen: ImageFiles, journal: Journal) -> NDArray[np.int64]:
        """Read from the headers of all files once; a build that goes on finds them again."""
        with suppress(OSError, ValueError):
            return checked_array(files.sizes, journal.get((f"{files.name}-sizes", 0), ""))
        firsts = range(0, len(chosen), MEASURED_AT_A_TIME)
        parts = (chosen.part(first, first + MEASURED_AT_A_TIME) for first in firsts)
        found = []
        with progress(len(chosen), f"{self.source} {files.name}, sizes", "image") as bar:
            for sizes in self.spread(ImageFiles.measured, parts):
                found.append(sizes)
                bar.update(len(sizes))
        self.note(f"{files.name}-sizes", 0, write_array(files.sizes, np.concatenate(found)))
        return np.concatenate(found)

    def spread(self, work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """`work` of each part in order, on all cores where there is enough of it."""
        if self.pool is None:
            return map(work, parts)
        return ahead(self.pool, work, parts, depth=2 * cores())

    def check_space(self, splits: list[Split], good: dict[str, dict[int, str]]) -> None:
        """Say what will be written before it is, and refuse what does not fit."""
        total = sum(int(split.starts[-1]) for split in splits)
        kept = sum(split.place(index)[1] for split in splits for index in good[split.files.name])
        images = sum(len(split.labels) for split in splits)
        free = shutil.disk_usage(self.partial).free
        going_on = f", {text_from_bytes(kept)} of it there already" if kept else ""
        self.tell(f"caching {self.source}: {images:,} images, {text_from_bytes(total)} in '{self.folder}'{going_on}")
        if total - kept > free:
            raise UserError(
                f"the cache of '{self.source}' needs {text_from_bytes(total - kept)}, and only {text_from_bytes(free)} "
                f"are free in '{self.folder.parent}'; make room, or name another folder with --cache-dir"
            )

    def write_split(self, split: Split, good: dict[int, str]) -> dict[str, Any]:
        """The chunks that are not there yet, in parallel; returns the manifest's entry."""
        checksums = dict(good)
        missing = [index for index in range(len(split.bounds)) if index not in good]
        parts = (split.originals.part(*split.bounds[index]) for index in missing)
        total, title = int(split.starts[-1]), f"{self.source} {split.files.name}"
        with open_at_size(split.files.pixels, total) as file, progress(total, title, "B") as bar:
            bar.update(sum(split.place(index)[1] for index in good))
            for index, pixels in zip(missing, self.spread(decoded, parts), strict=True):
                start, length = split.place(index)
                if len(pixels) != length:
                    split.files.sizes.unlink(missing_ok=True)
                    raise UserError(
                        f"an image of '{self.source}' has changed its size meanwhile; run the command again"
                    )
                file.seek(start)
                file.write(pixels)
                file.flush()
                checksums[index] = hashlib.sha256(pixels).hexdigest()
                self.note(split.files.name, index, checksums[index])
                bar.update(len(pixels))
            os.fsync(file.fileno())
        return {
            "count": len(split.labels),
            "shape": split.shape,
            "per_class": np.bincount(split.labels, minlength=self.loaded.num_classes).tolist(),
            "bytes": total,
            "labels_sha256": write_array(split.files.labels, split.labels),
            "sizes_sha256": None if split.sizes is None else write_array(split.files.sizes, split.sizes),
            "chunks": [checksums[index] for index in range(len(split.bounds))],
        }

    def finish(self, entries: dict[str, Any]) -> None:
        described = {
            "version": VERSION,
            "source": self.source,
            "num_classes": self.loaded.num_classes,
            "fingerprint": self.mark,
        }
        manifest = {**described, "sha256": digest_of(entries), "splits": entries, "seal": BLANK}
        write_sealed(self.partial / MANIFEST, manifest, self.folder.name)
        for name in (JOURNAL, ORIGIN):
            (self.partial / name).unlink()
        self.partial.rename(self.folder)
        sync_folder(self.folder.parent)


def decoded(originals: Originals) -> bytes:
    """The pixels of some images, one behind the other."""
    if isinstance(originals, InMemory):
        return originals.array[originals.rows].tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata; the pixels are what counts
        return b"".join(originals[index].tobytes() for index in range(len(originals)))


def good_chunks(split: Split, journal: Journal) -> dict[int, str]:
    """Chunks whose pixels are in the file as the journal says."""
    good = {}
    if split.files.pixels.is_file():
        with split.files.pixels.open("rb") as file:
            for index in range(len(split.bounds)):
                checksum = journal.get((split.files.name, index))
                start, length = split.place(index)
                file.seek(start)
                if checksum is not None and hashlib.sha256(file.read(length)).hexdigest() == checksum:
                    good[index] = checksum
    return good


def read_journal(path: Path) -> Journal:
    """The last word on each chunk; a line cut short by a crash says nothing."""
    lines = path.read_text().splitlines() if path.is_file() else []
    words = [line.split() for line in lines]
    return {(row[0], int(row[1])): row[2] for row in words if len(row) == 3 and row[1].isdigit()}


def open_at_size(path: Path, size: int) -> BinaryIO:
    path.touch()
    file = path.open("r+b")
    file.truncate(size)
    return file


def write_array(path: Path, array: NDArray[np.int64]) -> str:
    """Returns the file's SHA-256."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def progress(total: int, title: str, unit: str) -> Any:
    return tqdm(total=total, desc=title, unit=unit, unit_scale=True, leave=False, disable=not sys.stderr.isatty())
