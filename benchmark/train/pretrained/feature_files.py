"""Keep the features of a data set in a folder of the cache, written as the cache of any data set is (`data/cache.py`).

While they are computed the folder ends in .partial and has a journal with the checksum of every finished piece, so that
a run that was killed continues where it stopped. A piece has the same bytes on any number of cores.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.base.errors import UserError
from benchmark.base.files import remove_leftovers, say, sync
from benchmark.base.prefetch import ahead
from benchmark.base.schema import identity
from benchmark.base.units import counted, text_from_bytes, text_from_seconds
from benchmark.data.cache import SplitFiles, Unusable, chunk_bounds, image_starts, read_cache, write_manifest
from benchmark.data.cache_build import JOURNAL, build_lock, cannot_write, progress, read_journal, write_array
from benchmark.data.images import Images
from benchmark.data.preprocessing import channel_sums, mean_and_std
from benchmark.train.pretrained.features import PIECE, Wanted, Workers, plain_name

LINE_SECONDS = 60.0
"""Between two lines of progress where nobody watches a bar."""
ROWS_AT_A_TIME = 4096
Tell = Callable[[str], None]


def compute_features(wanted: Wanted, tell: Tell = say) -> Path:
    """Return the folder with the features; compute what is missing of them."""
    folder = wanted.folder
    partial = folder.with_name(f"{folder.name}.partial")
    if is_there(folder, tell):
        return folder
    with build_lock(folder, tell):
        if is_there(folder, lambda text: None):
            return folder
        try:
            shutil.rmtree(folder, ignore_errors=True)
            partial.mkdir(parents=True, exist_ok=True)
            remove_leftovers(partial)
            check_space(wanted, partial, tell)
            write_features(wanted, partial, tell)
            partial.rename(folder)
            sync(folder.parent)
        except OSError as error:
            raise cannot_write(folder, error) from None
    return folder


def is_there(folder: Path, tell: Tell) -> bool:
    """Tell whether all features are there, each chunk with the right checksum."""
    try:
        read_cache(folder, None, thorough=True)
    except Unusable as problem:
        if str(problem):
            tell(f"{problem}; computing the features again")
        return False
    return True


def check_space(wanted: Wanted, partial: Path, tell: Tell) -> None:
    """Say what will be computed; raise UserError if the disk has too little space."""
    kept = sum(path.stat().st_size for path in partial.glob("*.pixels"))
    free = shutil.disk_usage(partial).free
    tell(
        f"features of {wanted.data.source} by {wanted.task.network.name}: {counted(wanted.num_images, 'image')}, "
        f"{wanted.width:,} numbers each, {text_from_bytes(wanted.bytes)} in '{wanted.folder}'"
    )
    if wanted.bytes - kept > free:
        raise UserError(
            f"the features need {text_from_bytes(wanted.bytes)}, and only {text_from_bytes(free)} are free in "
            f"'{partial.parent}'; make room, or choose another folder with --cache-dir"
        )


def write_features(wanted: Wanted, partial: Path, tell: Tell) -> None:
    """Write the features of all splits, and the manifest last."""
    good = good_pieces(wanted, partial)
    if good:
        tell(f"{sum(good.values()):,} of {wanted.num_images:,} are there already")
    compute_pieces(wanted, partial, [piece for piece in wanted.pieces() if piece not in good], sum(good.values()), tell)
    splits = wanted.loaded[0].splits()
    entries = {name: describe_split(SplitFiles(partial, name), images, wanted) for name, images in splits.items()}
    facts = {
        "source": "features",
        "num_classes": wanted.facts.num_classes,
        "fingerprint": None,
        "measured": measure(SplitFiles(partial, "train"), wanted),
        "network": identity(wanted.task.network),
    }
    write_manifest(partial, wanted.folder.name, facts, entries)
    (partial / JOURNAL).unlink(missing_ok=True)


def good_pieces(wanted: Wanted, partial: Path) -> dict[tuple[str, int], int]:
    """Return the pieces that are there as the journal says, each with its number of images."""
    journal, good = read_journal(partial / JOURNAL), {}
    for name, first in wanted.pieces():
        file, count = SplitFiles(partial, name).pixels, min(PIECE, wanted.counts[name] - first)
        if (name, first) in journal and file.is_file():
            with file.open("rb") as pixels:
                pixels.seek(first * wanted.row)
                found = hashlib.sha256(pixels.read(count * wanted.row)).hexdigest()
            if found == journal[name, first]:
                good[name, first] = count
    return good


def compute_pieces(wanted: Wanted, partial: Path, missing: list[tuple[str, int]], done: int, tell: Tell) -> None:
    """Compute and write the pieces that are missing, with a line about each in the journal once it is written."""
    for name, count in wanted.counts.items():
        path = SplitFiles(partial, name).pixels
        path.touch()
        os.truncate(path, count * wanted.row)
    if not missing:
        return
    workers, title = Workers(wanted), f"{wanted.data.source} {plain_name(wanted.task.network.name)}"
    watch = Watch(wanted.num_images, done, tell)
    with (
        progress(wanted.num_images, title, "image") as bar,
        ThreadPoolExecutor(workers.count) as threads,
        (partial / JOURNAL).open("a") as journal,
    ):
        bar.update(done)
        found = ahead(threads, workers.features, missing, depth=2 * workers.count)
        for (name, first), features in zip(missing, found, strict=True):
            content = features.tobytes()
            with SplitFiles(partial, name).pixels.open("r+b") as file:
                file.seek(first * wanted.row)
                file.write(content)
            journal.write(f"{name} {first} {hashlib.sha256(content).hexdigest()}\n")
            journal.flush()
            bar.update(len(features))
            if bar.disable:
                watch.note(len(features))


@dataclass
class Watch:
    """Says once a minute how far it is, where there is no bar to watch."""

    total: int
    done: int
    tell: Tell

    def __post_init__(self) -> None:
        self.begun = self.said = time.monotonic()
        self.before = self.done

    def note(self, count: int) -> None:
        self.done, now = self.done + count, time.monotonic()
        if now - self.said >= LINE_SECONDS:
            self.said, rate = now, (self.done - self.before) / (now - self.begun)
            left = text_from_seconds((self.total - self.done) / rate)
            self.tell(f"{self.done:,} of {self.total:,} images, {rate:.0f} per second, {left} left")


def describe_split(files: SplitFiles, images: Images, wanted: Wanted) -> dict[str, Any]:
    """Return the entry of a split in the manifest."""
    shape = [wanted.width, 1, 1]
    starts = image_starts(len(images), [shape[0] * np.dtype(wanted.dtype).itemsize, 1, 1], None)
    content = np.memmap(files.pixels, np.uint8, mode="r")
    with files.pixels.open("rb") as file:
        os.fsync(file.fileno())
    return {
        "count": len(images),
        "shape": shape,
        "per_class": np.bincount(images.labels, minlength=wanted.facts.num_classes).tolist(),
        "bytes": int(starts[-1]),
        "labels_sha256": write_array(files.labels, images.labels),
        "sizes_sha256": None,
        "chunks": [
            hashlib.sha256(content[starts[first] : starts[end]].tobytes()).hexdigest()
            for first, end in chunk_bounds(starts)
        ],
        "dtype": wanted.dtype,
    }


def measure(files: SplitFiles, wanted: Wanted) -> dict[str, list[float]]:
    """Return mean and std of each number over the training images."""
    vectors = np.memmap(files.pixels, wanted.dtype, mode="r").reshape(-1, wanted.width, 1, 1)
    starts = range(0, len(vectors), ROWS_AT_A_TIME)
    return mean_and_std(np.sum([channel_sums(vectors[start : start + ROWS_AT_A_TIME]) for start in starts], axis=0))
