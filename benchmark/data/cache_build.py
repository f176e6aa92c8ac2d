"""Making a cache, chunk by chunk.

It grows in a folder that ends in .partial, with a journal of the checksum of every chunk. So a build that was killed
goes on where it stopped, and of a damaged cache only the damaged chunks are made again.
"""

import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, suppress
from dataclasses import dataclass
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
    digest_of,
    is_whole,
    partial_of,
)
from benchmark.chunks import Chunk, Chunks, InMemory, Journal, Split, decoded, good_chunks
from benchmark.errors import UserError
from benchmark.files import BLANK, read_json, sync_folder, write_atomically, write_json, write_sealed
from benchmark.preprocessing import mean_and_std
from benchmark.sources import Images, Loaded
from benchmark.sources._files import ImageFiles
from benchmark.units import counted, text_from_bytes

JOURNAL, ORIGIN = "journal.txt", "origin.json"
WORTH_PROCESSES = 1000
"""Files from which on it pays to start processes that decode them."""
MEASURED_AT_A_TIME = 1000

Part = TypeVar("Part")
Result = TypeVar("Result")


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
        chunks = {split.files.name: self.write_split(split, good[split.files.name]) for split in splits}
        self.finish(
            {split.files.name: self.entry(split, chunks[split.files.name]) for split in splits}, chunks["train"]
        )

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

    def check_space(self, splits: list[Split], good: dict[str, Chunks]) -> None:
        """Say what will be written before it is, and refuse what does not fit."""
        total = sum(int(split.starts[-1]) for split in splits)
        kept = sum(split.place(index)[1] for split in splits for index in good[split.files.name])
        images = sum(len(split.labels) for split in splits)
        free = shutil.disk_usage(self.partial).free
        going_on = f", {text_from_bytes(kept)} of it there already" if kept else ""
        self.tell(
            f"caching {self.source}: {counted(images, 'image')}, {text_from_bytes(total)} in '{self.folder}'{going_on}"
        )
        if total - kept > free:
            raise UserError(
                f"the cache of '{self.source}' needs {text_from_bytes(total - kept)}, and only {text_from_bytes(free)} "
                f"are free in '{self.folder.parent}'; make room, or name another folder with --cache-dir"
            )

    def write_split(self, split: Split, good: Chunks) -> Chunks:
        """The chunks that are not there yet, in parallel."""
        chunks = dict(good)
        missing = [index for index in range(len(split.bounds)) if index not in good]
        parts = (split.originals.part(*split.bounds[index]) for index in missing)
        total, title = int(split.starts[-1]), f"{self.source} {split.files.name}"
        with open_at_size(split.files.pixels, total) as file, progress(total, title, "B") as bar:
            bar.update(sum(split.place(index)[1] for index in good))
            for index, (pixels, sums) in zip(missing, self.spread(decoded, parts), strict=True):
                start, length = split.place(index)
                if len(pixels) != length:
                    split.files.sizes.unlink(missing_ok=True)
                    raise UserError(
                        f"an image of '{self.source}' has changed its size meanwhile; run the command again"
                    )
                file.seek(start)
                file.write(pixels)
                file.flush()
                chunks[index] = Chunk(hashlib.sha256(pixels).hexdigest(), sums)
                self.note(split.files.name, index, chunks[index].checksum)
                bar.update(len(pixels))
            os.fsync(file.fileno())
        if isinstance(split.originals, ImageFiles):
            write_atomically(split.files.names, os.fsencode("\n".join(split.originals.paths) + "\n"))
        return chunks

    def entry(self, split: Split, chunks: Chunks) -> dict[str, Any]:
        """What the manifest says of a split; together these identify the data."""
        return {
            "count": len(split.labels),
            "shape": split.shape,
            "per_class": np.bincount(split.labels, minlength=self.loaded.num_classes).tolist(),
            "bytes": int(split.starts[-1]),
            "labels_sha256": write_array(split.files.labels, split.labels),
            "sizes_sha256": None if split.sizes is None else write_array(split.files.sizes, split.sizes),
            "chunks": [chunks[index].checksum for index in range(len(split.bounds))],
        }

    def finish(self, entries: dict[str, Any], train: Chunks) -> None:
        described = {
            "version": VERSION,
            "source": self.source,
            "num_classes": self.loaded.num_classes,
            "fingerprint": self.mark,
            "measured": mean_and_std(np.sum([chunk.sums for chunk in train.values()], axis=0)),
        }
        manifest = {**described, "sha256": digest_of(entries), "splits": entries, "seal": BLANK}
        write_sealed(self.partial / MANIFEST, manifest, self.folder.name)
        for name in (JOURNAL, ORIGIN):
            (self.partial / name).unlink()
        self.partial.rename(self.folder)
        sync_folder(self.folder.parent)


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
