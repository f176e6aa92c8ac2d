"""Read and write the results folder. Files are written whole, the record last: a job with a record is done."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.base.files import (
    BLANK,
    COMPRESSED,
    Damaged,
    as_kept,
    check_folder,
    claimed,
    make_lasting,
    read_content,
    read_if_there,
    read_sealed,
    remove_leftovers,
    say,
    sealed,
    set_aside,
    small,
    unsealed,
    write_atomically,
    write_sealed,
)
from benchmark.base.names import is_plain
from benchmark.base.rows import csv_text
from benchmark.measure.prediction import Classifier, Evidence
from benchmark.store.manifest import FOREIGN, Manifest, checked_names, plain_manifest, read_manifest
from benchmark.store.prediction_file import packed, packed_classifier, unpacked, unpacked_classifier
from benchmark.store.record import Record, is_older_record, plain_record, read_record

RECORD, HISTORY, ERROR, LOG = "record.json", "history.csv", "error.txt", "log.txt"
CHECKPOINT, CHECKPOINT_BEFORE = "checkpoint.pt", "checkpoint-before.pt"
TRUNK = "-trunk"
"""The end of the name of the folder where a job leaves its snapshots."""
STALE_RECORD = "record.json.stale"
PREDICTION, PREDICTION_VAL, PREDICTION_TRAIN = "prediction.npz", "prediction-val.npz", "prediction-train.npz"
PARTS = "parts.json"
"""The parts of an evaluation set that are predicted so far, with their checksums; only while a job is unfinished."""
CLASSIFIER = "classifier.npz"
"""The last layer of the tested network."""


def of_part(part: str) -> str:
    """Return the file name of the prediction of a part of an evaluation set."""
    stem, dot, suffix = PREDICTION.partition(".")
    return f"{stem}-{part}{dot}{suffix}"


def snapshot_name(epoch: int) -> str:
    return f"snapshot-{epoch}.pt"


@dataclass(frozen=True)
class Store:
    """A results folder. Jobs are named by their folder below it."""

    root: Path
    base: Path | None = None
    """Where to read what is not below `root`; nothing is ever written there."""

    def find(self, folder: Path, name: str) -> Path:
        """Return the path of a job's file: below `root`, or below `base` where `root` has none."""
        own = as_kept(self.root / folder / name)
        return own if self.base is None or own.exists() else as_kept(self.base / folder / name)

    def check_writable(self) -> None:
        """Raise an error before any training if nothing can be written to the folder."""
        remove_leftovers(self.root)
        check_folder(self.root, "results folder ", "--results DIR")

    def state(self, folder: Path) -> str:
        """Return done (there is a record), diverged (it has no result), partial (there is a checkpoint) or new."""
        if (record := self.read_record(folder)) is not None:
            return "done" if record.diverged is None else "diverged"
        return "partial" if self.has_checkpoint(folder) else "new"

    def claim(self, folder: Path) -> AbstractContextManager[bool]:
        """Lock a job's files for a block, and yield whether that worked. A dead process holds no lock."""
        return claimed(self.lock_path(folder), lambda: self.has_record(folder))

    def is_claimed(self, folder: Path) -> bool:
        """Tell whether a living process has the lock, and remove the lock file of a finished job."""
        if not self.lock_path(folder).exists():
            return False
        with self.claim(folder) as ours:
            return not ours

    def lock_path(self, folder: Path) -> Path:
        """Return the lock file. A job and its trunk share one, as either may write the snapshots."""
        return (self.root / folder).with_name(f".{folder.name.removesuffix(TRUNK)}.lock")

    def has_checkpoint(self, folder: Path, name: str = CHECKPOINT) -> bool:
        return any(self.find(folder, each).is_file() for each in newest_first(name))

    def remove_checkpoint(self, folder: Path) -> None:
        for name in newest_first(CHECKPOINT):
            (self.root / folder / name).unlink(missing_ok=True)

    def remove_snapshot(self, folder: Path, epoch: int) -> None:
        (self.root / folder / snapshot_name(epoch)).unlink(missing_ok=True)

    def remove_trunk(self, folder: Path) -> None:
        """Remove the folder of a trunk, unless another process trains it, by itself or as part of a job."""
        if (self.root / folder).is_dir() or self.lock_path(folder).exists():
            with self.claim(folder) as ours:
                if ours:
                    shutil.rmtree(self.root / folder, ignore_errors=True)
                    self.lock_path(folder).unlink(missing_ok=True)

    def read_record(self, folder: Path) -> Record | None:
        """Return the record, or None where it is missing or damaged; `damage` tells which."""
        with suppress(Damaged):
            return self.read_sealed_record(folder)
        return None

    def read_sealed_record(self, folder: Path) -> Record | None:
        """Return the record, or None where there is none. Raise Damaged where it is not as it was written."""
        path = self.find(folder, RECORD)
        plain = read_sealed(path, folder.as_posix(), is_older_record)
        return None if plain is None else read_record(plain, str(path))

    def has_record(self, folder: Path) -> bool:
        """Tell whether there is a record, damaged or not."""
        return self.find(folder, RECORD).is_file()

    def damage(self, folder: Path) -> dict[str, str]:
        """Return the damaged files of a job, and what is wrong with each."""
        damaged: dict[str, str] = {}
        for path in (self.root / folder).glob("*.pt"):
            try:
                unsealed(read_if_there(path) or b"", place_of(folder, path.name))
            except Damaged as why:
                damaged[path.name] = str(why)
        try:
            record = self.read_sealed_record(folder)
        except Damaged as why:
            return {**damaged, RECORD: str(why)}
        checksums = (record and record.checksums) or {}
        if not all(map(is_plain, checksums)):
            return {RECORD: FOREIGN}
        for name, sha256 in checksums.items():
            try:
                self.read_checked(folder, name, sha256)
            except Damaged as why:
                damaged[name] = str(why)
        return damaged

    def set_aside(self, folder: Path, names: Iterable[str]) -> None:
        """Rename damaged files of a job that we have claimed; first its record, if that describes one of them."""
        damaged, record = set(names), self.read_record(folder)
        kept = record is not None and record.provenance.weights_kept and CHECKPOINT in damaged
        if kept or not all(name.endswith(".pt") for name in damaged):
            set_aside(self.root / folder / RECORD)
        for name in damaged - {RECORD}:
            set_aside(self.root / folder / name)

    def set_stale_aside(self, folder: Path) -> None:
        kept = as_kept(self.root / folder / RECORD)
        kept.replace(kept.with_name(kept.name.replace(RECORD, STALE_RECORD)))

    def records(self, task: str) -> Iterator[Record]:
        """Yield the records of all finished jobs of a task, whatever command they belong to."""
        for folder in self.finished(task):
            if (record := self.read_record(folder)) is not None:
                yield record

    def finished(self, task: str = "*") -> list[Path]:
        """Return the folders of all finished jobs of a task, or of all tasks."""
        folders = sorted(self.root.glob(f"{task}/*/*/*"))
        return [folder.relative_to(self.root) for folder in folders if as_kept(folder / RECORD).is_file()]

    def write_record(self, folder: Path, record: Record) -> None:
        """Write a record with its seal in the provenance: the rest is equal wherever and whenever it was made.

        The files that it has checksums of survive a power cut before it does.
        """
        self.make_lasting(folder, record.checksums or ())
        plain = plain_record(record)
        provenance = {**plain["provenance"], "seal": BLANK}
        write_sealed(self.root / folder / RECORD, {**plain, "provenance": provenance}, folder.as_posix())
        small(self.root / folder / RECORD).unlink(missing_ok=True)

    def write_prediction(self, folder: Path, name: str, evidence: Evidence) -> str:
        """Write a prediction with its labels, and return the SHA-256 of the file."""
        return self.write_checked(folder, name, packed(evidence))

    def write_classifier(self, folder: Path, classifier: Classifier) -> str:
        """Write the last layer of a network, and return the SHA-256 of the file."""
        return self.write_checked(folder, CLASSIFIER, packed_classifier(classifier))

    def write_checked(self, folder: Path, name: str, content: bytes | memoryview) -> str:
        """Write a file and return its SHA-256. It can be lost in a power cut, as long as nothing tells of it yet."""
        write_atomically(self.root / folder / name, content, lasting=False)
        return hashlib.sha256(content).hexdigest()

    def make_lasting(self, folder: Path, names: Iterable[str]) -> None:
        """Make sure that files survive a power cut: for whoever writes their checksums into another one."""
        make_lasting(self.root / folder, names)

    def read_prediction(self, folder: Path, name: str = PREDICTION, sha256: str | None = None) -> Evidence:
        """Return a prediction. Raise Damaged where its checksum is not this one, by default that of the record."""
        return unpacked(self.read_array_file(folder, name, sha256))

    def read_classifier(self, folder: Path, sha256: str | None = None) -> Classifier:
        """Return the last layer of a network, checked as a prediction is."""
        return unpacked_classifier(self.read_array_file(folder, CLASSIFIER, sha256))

    def read_array_file(self, folder: Path, name: str, sha256: str | None) -> bytes:
        if sha256 is None and self.find(folder, name).exists():
            record = self.read_record(folder)
            sha256 = ((record and record.checksums) or {}).get(name)
        try:
            content = self.read_checked(folder, name, sha256)
        except Damaged as why:
            raise Damaged(f"'{self.find(folder, name)}': {why}") from None
        if content is None:
            raise FileNotFoundError(f"{folder / name}: there is no such prediction")
        return content

    def read_checked(self, folder: Path, name: str, sha256: str | None) -> bytes | None:
        """Return the content of a file, or None without one: predictions may be removed to save room."""
        content = read_content(self.find(folder, name))
        if content is not None and sha256 not in (None, hashlib.sha256(content).hexdigest()):
            raise Damaged("its checksum is wrong" if content else "it is empty")
        return content

    def write_history(self, folder: Path, rows: Sequence[Mapping[str, float]]) -> str:
        """Write the learning curve as CSV, and return the SHA-256 of the file."""
        small(self.root / folder / HISTORY).unlink(missing_ok=True)
        return self.write_checked(folder, HISTORY, csv_text(rows).encode())

    def write_checkpoint(self, folder: Path, payload: bytes, name: str = CHECKPOINT) -> None:
        """Write a checkpoint and keep the one before it, in case of damage. torch.load ignores the seal at the end."""
        path = self.root / folder / name
        if name == CHECKPOINT:
            with suppress(FileNotFoundError):
                path.replace(path.with_name(CHECKPOINT_BEFORE))
        write_atomically(path, sealed(payload, place_of(folder, name)))

    def checkpoints(self, folder: Path, name: str = CHECKPOINT, *, ours: bool = True) -> Iterator[bytes]:
        """Yield the whole checkpoints, newest first. Skip damaged ones; rename those of a job that is ours."""
        roots = [root for root in (self.root, self.base) if root is not None]
        for path in (root / folder / each for root in roots for each in newest_first(name)):
            try:
                if (content := read_if_there(path)) is not None:
                    yield unsealed(content, place_of(folder, path.name))
            except Damaged as why:
                movable = ours and path.is_relative_to(self.root)
                say(f"'{path}' is damaged ({why}): {'moved aside' if movable else 'passed over'}")
                if movable:
                    set_aside(path)

    def write_error(self, folder: Path, text: str) -> None:
        write_atomically(self.root / folder / ERROR, text.encode())

    def tidy(self, folder: Path) -> bool:
        """Remove files that a finished job no longer needs, also after a crash; return whether the job is done."""
        if (record := self.read_record(folder)) is None:
            return False
        weights = () if record.provenance.weights_kept else (CHECKPOINT,)
        for name in (ERROR, LOG, PARTS, STALE_RECORD, STALE_RECORD + COMPRESSED, CHECKPOINT_BEFORE, *weights):
            (self.root / folder / name).unlink(missing_ok=True)
        return True

    def write_manifest(self, manifest: Manifest, folder: str = "manifests") -> None:
        self.replace_json(Path(folder, f"{manifest.name}.json"), plain_manifest(manifest))

    def read_manifest(self, path: Path) -> Manifest | None:
        """Return a manifest, or None where there is no file. Raise Damaged where it is not as it was written."""
        plain = self.read_json(path.relative_to(self.root))
        return None if plain is None else checked_names(read_manifest(plain, str(path)), path.stem)

    def replace_json(self, place: Path, value: Mapping[str, Any]) -> None:
        """Replace an object by a new one. If the old one is damaged, rename it, so that people can look at it."""
        try:
            self.read_json(place)
        except Damaged as why:
            say(f"'{self.root / place}' is damaged ({why}): moved aside, and written again")
            set_aside(self.root / place)
        write_sealed(self.root / place, {**value, "seal": BLANK}, place.as_posix())

    def read_json(self, place: Path) -> dict[str, Any] | None:
        return read_sealed(self.root / place, place.as_posix(), lambda old: "entries" in old and "torch" not in old)

    def paper_manifests(self) -> list[Manifest]:
        """Return the manifests of the published tables that commands have asked for."""
        return self.manifests("paper")

    def manifests(self, folder: str = "manifests") -> list[Manifest]:
        """Return what commands have asked for, one manifest per task; tables show exactly this."""
        found = []
        for path in sorted((self.root / folder).glob("*.json")):
            try:
                if (manifest := self.read_manifest(path)) is not None:
                    found.append(manifest)
            except Damaged as why:
                say(f"'{path}' is damaged ({why}) and left out; the command that wrote it writes it again")
        return found


def newest_first(name: str) -> tuple[str, ...]:
    """Return the names to read for a checkpoint: itself, then the one before it."""
    return (name, CHECKPOINT_BEFORE) if name == CHECKPOINT else (name,)


def place_of(folder: Path, name: str) -> str:
    """Return the path that the seal of a checkpoint includes; the one before keeps that of the newest."""
    return (folder / (CHECKPOINT if name == CHECKPOINT_BEFORE else name)).as_posix()


def folder_of(task: str, method: str, job_id: str, seed: int) -> Path:
    return Path(task, method, job_id, f"seed-{seed}")
