"""Open the cache of a data set, and build it, chunk by chunk, where there is none.

It is built in a folder that ends in .partial, with a journal of the checksum of every chunk. So a build that was
killed continues where it stopped, and of a damaged cache only the damaged chunks are built again.
"""

import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from tqdm import tqdm

from benchmark.base.errors import MissingData, UserError
from benchmark.base.files import read_json, remove_leftovers, say, sync_folder, write_atomically, write_json
from benchmark.base.prefetch import ahead, cores, processes
from benchmark.base.program import program
from benchmark.base.units import counted, text_from_bytes
from benchmark.config.task import DataConfig
from benchmark.data.cache import (
    MANIFEST,
    VERSION,
    Folders,
    SplitFiles,
    Unusable,
    cache_name,
    fingerprint_originals,
    is_whole,
    read_cache,
    read_checked_array,
    write_manifest,
)
from benchmark.data.cache_chunks import BYTES, Chunk, Chunks, Journal, SplitLayout, decode, good_chunks
from benchmark.data.images import Images, Loaded
from benchmark.data.preprocessing import mean_and_std
from benchmark.data.sources import check_labels, describe, get_source
from benchmark.data.sources._files import CACHE_TAG, ImageFiles

JOURNAL, ORIGIN = "journal.txt", "origin.json"
WORTH_PROCESSES = 1000
"""From this number of files on, processes are started to decode them."""
MEASURED_AT_A_TIME = 1000
TAG_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"

Tell = Callable[[str], None]
Part = TypeVar("Part")
Result = TypeVar("Result")


def open_cache(
    config: DataConfig, folders: Folders, *, build: bool = True, thorough: bool = False, tell: Tell = say
) -> tuple[Loaded, str]:
    """Return the images of a source and their hash from its cache; build the cache where it is missing or damaged."""
    folder = folders.cache / cache_name(config)
    partial = folder.with_name(f"{folder.name}.partial")
    if build:
        for path in (folder, partial):
            remove_leftovers(path)
    try:
        return read_cache(folder, fingerprint_originals(config, folders), thorough=thorough, need_mean=not config.mean)
    except Unusable as problem:
        if not build:
            raise MissingData(
                f"'{config.path or config.source}' is not cached yet; do so with: {program()} prepare"
            ) from None
        if str(problem):
            tell(f"{config.source}: {problem}; building it again")
    originals = replace(get_source(config).load(config, folders.data), num_classes=describe(config).num_classes)
    check_labels(originals, config)
    fingerprint = fingerprint_originals(config, folders)
    with build_lock(folder, tell):
        with suppress(Unusable):
            return read_cache(folder, fingerprint, need_mean=not config.mean)  # another process has built it meanwhile
        Builder(folder, partial, config.source, originals, fingerprint, tell).build()
    try:
        return read_cache(folder, fingerprint)
    except Unusable as problem:
        raise UserError(f"{problem}, though it was just built; try again, or check the disk if it stays so") from None


def cannot_write(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"cannot write the cache '{folder}': {error.strerror or error}; make room, or choose another folder with "
        "--cache-dir; the same command then continues"
    )


@contextmanager
def build_lock(folder: Path, tell: Tell) -> Iterator[None]:
    """Let one process at a time build a cache; the lock of a process that was killed is free."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tag = folder.parent / CACHE_TAG
        if not tag.exists():
            tag.write_text(f"{TAG_SIGNATURE}\n# Decoded images; may be removed, and will then be made again.\n")
        lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            tell(f"waiting for another process that builds '{folder}'")
            lock.acquire()
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        yield
    finally:
        lock.release()


@dataclass
class Builder:
    """Builds a cache in the folder `partial`, from the originals that have this fingerprint; then renames it."""

    folder: Path
    partial: Path
    source: str
    loaded: Loaded
    fingerprint: str | None
    tell: Tell
    pool: ProcessPoolExecutor | None = None

    def build(self) -> None:
        pictures = [images.pictures for images in self.loaded.splits().values()]
        # Other processes do not know a class of a user's own file.
        many = sum(len(each) for each in pictures if type(each) is ImageFiles) >= WORTH_PROCESSES
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
        splits = [self.lay_out(name, images, journal) for name, images in self.loaded.splits().items()]
        good = {split.files.name: good_chunks(split, journal) for split in splits}
        self.check_space(splits, good)
        chunks = {split.files.name: self.write_split(split, good[split.files.name]) for split in splits}
        entries = {split.files.name: self.describe_split(split, chunks[split.files.name]) for split in splits}
        self.finish(entries, chunks["test" if self.loaded.test_alone else "train"])

    def begin(self) -> None:
        """Prepare the .partial folder; keep what an earlier build or a damaged cache has of the same originals."""
        origin = {"version": VERSION, "fingerprint": self.fingerprint}
        if self.folder.is_dir():
            old = read_json(self.folder / MANIFEST) or {}
            shutil.rmtree(self.partial, ignore_errors=True)
            self.folder.rename(self.partial)
            (self.partial / MANIFEST).unlink(missing_ok=True)
            if is_whole(old) and old["fingerprint"] == self.fingerprint:
                for name, entry in old["splits"].items():
                    self.add_to_journal(f"{name}-sizes", 0, entry["sizes_sha256"])
                    for index, checksum in enumerate(entry["chunks"]):
                        self.add_to_journal(name, index, checksum)
                write_json(self.partial / ORIGIN, origin)
        if read_json(self.partial / ORIGIN) != origin:
            shutil.rmtree(self.partial, ignore_errors=True)
            self.partial.mkdir(parents=True)
            write_json(self.partial / ORIGIN, origin)

    def add_to_journal(self, name: str, index: int, checksum: str | None) -> None:
        with (self.partial / JOURNAL).open("a") as journal:
            journal.write(f"{name} {index} {checksum}\n")

    def lay_out(self, name: str, images: Images, journal: Journal) -> SplitLayout:
        """Return where every image of a split will be in the file, before any is decoded."""
        files, pictures = SplitFiles(self.partial, name), images.pictures
        if not isinstance(pictures, ImageFiles):
            array = np.asarray(pictures)
            return SplitLayout(files, images, None, list(array.shape[1:]), array.dtype)
        if pictures.keeps_shape:
            sizes = self.read_sizes(files, pictures.take(images.rows), journal)
            return SplitLayout(files, images, sizes, [pictures.channels, 0, 0])
        return SplitLayout(files, images, None, [pictures.channels, pictures.size, pictures.size])

    def read_sizes(self, files: SplitFiles, chosen: ImageFiles, journal: Journal) -> NDArray[np.int64]:
        """Return the sizes of all images; read them from the files once, and keep them for a build that continues."""
        with suppress(OSError, ValueError):
            return read_checked_array(files.sizes, journal.get((f"{files.name}-sizes", 0), ""))
        firsts = range(0, len(chosen), MEASURED_AT_A_TIME)
        parts = (replace(chosen, paths=chosen.paths[first : first + MEASURED_AT_A_TIME]) for first in firsts)
        parts_read = []
        with progress(len(chosen), f"{self.source} {files.name}, sizes", "image") as bar:
            for sizes in self.map_parts(ImageFiles.read_sizes, parts):
                parts_read.append(sizes)
                bar.update(len(sizes))
        all_sizes = np.concatenate(parts_read)
        self.add_to_journal(f"{files.name}-sizes", 0, write_array(files.sizes, all_sizes))
        return all_sizes

    def map_parts(self, work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """Yield the result of `work` for each part, in order; on all cores where there are processes."""
        if self.pool is None:
            return map(work, parts)
        return ahead(self.pool, work, parts, depth=2 * cores())

    def check_space(self, splits: list[SplitLayout], good: dict[str, Chunks]) -> None:
        """Tell the user what will be written; raise an error if the disk has too little space."""
        total = sum(int(split.starts[-1]) for split in splits)
        kept = sum(split.byte_range(index)[1] for split in splits for index in good[split.files.name])
        images = sum(len(split.images) for split in splits)
        free = shutil.disk_usage(self.partial).free
        existing = f", {text_from_bytes(kept)} of it there already" if kept else ""
        self.tell(
            f"caching {self.source}: {counted(images, 'image')}, {text_from_bytes(total)} in '{self.folder}'{existing}"
        )
        if total - kept > free:
            raise UserError(
                f"the cache of '{self.source}' needs {text_from_bytes(total - kept)}, and only {text_from_bytes(free)} "
                f"are free in '{self.folder.parent}'; make room, or choose another folder with --cache-dir"
            )

    def write_split(self, split: SplitLayout, good: Chunks) -> Chunks:
        """Write the chunks that are missing, decoded in parallel; return all chunks."""
        chunks = dict(good)
        missing = [index for index in range(len(split.bounds)) if index not in good]
        total, title = int(split.starts[-1]), f"{self.source} {split.files.name}"
        split.files.pixels.touch()
        with split.files.pixels.open("r+b") as file, progress(total, title, "B") as bar:
            file.truncate(total)
            bar.update(sum(split.byte_range(index)[1] for index in good))
            for index, (pixels, sums) in zip(
                missing, self.map_parts(decode, map(split.originals, missing)), strict=True
            ):
                start, length = split.byte_range(index)
                if len(pixels) != length:
                    split.files.sizes.unlink(missing_ok=True)
                    raise UserError(
                        f"an image of '{self.source}' changed its size during the build; run the command again"
                    )
                file.seek(start)
                file.write(pixels)
                file.flush()
                chunks[index] = Chunk(hashlib.sha256(pixels).hexdigest(), sums)
                self.add_to_journal(split.files.name, index, chunks[index].checksum)
                bar.update(len(pixels))
            os.fsync(file.fileno())
        if isinstance(pictures := split.images.pictures, ImageFiles):
            paths = pictures.take(split.images.rows).paths
            write_atomically(split.files.names, os.fsencode("\n".join(paths) + "\n"))
        return chunks

    def describe_split(self, split: SplitLayout, chunks: Chunks) -> dict[str, Any]:
        """Return the entry of a split in the manifest; the hash of all entries identifies the data."""
        return {
            "count": len(split.images),
            "shape": split.shape,
            "per_class": np.bincount(split.images.labels, minlength=self.loaded.num_classes).tolist(),
            "bytes": int(split.starts[-1]),
            "labels_sha256": write_array(split.files.labels, split.images.labels),
            "sizes_sha256": None if split.sizes is None else write_array(split.files.sizes, split.sizes),
            "chunks": [chunks[index].checksum for index in range(len(split.bounds))],
            **({} if split.dtype == BYTES else {"dtype": str(split.dtype)}),
        }

    def finish(self, entries: dict[str, Any], measured: Chunks) -> None:
        facts = {
            "source": self.source,
            "num_classes": self.loaded.num_classes,
            "fingerprint": self.fingerprint,
            "measured": mean_and_std(np.sum([chunk.sums for chunk in measured.values()], axis=0)),
        }
        write_manifest(self.partial, self.folder.name, facts, entries)
        for name in (JOURNAL, ORIGIN):
            (self.partial / name).unlink()
        self.partial.rename(self.folder)
        sync_folder(self.folder.parent)


def read_journal(path: Path) -> Journal:
    """Return the last checksum noted for each chunk; skip a line that a crash cut short."""
    lines = path.read_text().splitlines() if path.is_file() else []
    words = [line.split() for line in lines]
    return {(row[0], int(row[1])): row[2] for row in words if len(row) == 3 and row[1].isdigit()}


def write_array(path: Path, array: NDArray[np.int64]) -> str:
    """Write an array to a file; return the file's SHA-256."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()


def progress(total: int, title: str, unit: str) -> Any:
    return tqdm(total=total, desc=title, unit=unit, unit_scale=True, leave=False, disable=not sys.stderr.isatty())
