"""What a power cut can take: never a file whose checksum is in a record, a checkpoint or a list of parts."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.data.evaluation.parts import Part
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.store.store import CHECKPOINT, PARTS, RECORD, Store
from benchmark.train.evaluation.part_files import PartFiles
from tests.conftest import run_here


def in_json(key: str) -> Callable[[bytes], dict[str, str]]:
    return lambda content: json.loads(content)[key]


def in_checkpoint(content: bytes) -> dict[str, str]:
    return torch.load(io.BytesIO(content), weights_only=True)["checksums"]  # type: ignore[no-any-return]


TELLING: dict[str, Callable[[bytes], dict[str, str]]] = {
    RECORD: in_json("checksums"),
    CHECKPOINT: in_checkpoint,
    PARTS: in_json("parts"),
}
"""Files that tell of others, and how to read which."""


class Disk:
    """Notes what has been told to the disk for good, and what tells of something that has not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.contents: set[tuple[int, int]] = set()
        self.names: dict[str, dict[str, tuple[int, int]]] = {}
        self.told: dict[str, int] = dict.fromkeys(TELLING, 0)
        self.too_early: list[str] = []
        self.fsync, self.replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self.note_fsync)
        monkeypatch.setattr(os, "replace", self.note_replace)

    def note_fsync(self, file: int) -> None:
        self.fsync(file)
        path = str(Path(f"/proc/self/fd/{file}").readlink())
        if Path(path).is_dir():
            self.names[path] = {entry.name: version(entry) for entry in os.scandir(path) if entry.is_file()}
        else:
            self.contents.add(version(path))

    def note_replace(self, source: Any, target: Any) -> None:
        folder, name = os.path.split(os.path.realpath(target))
        for file in TELLING[name](Path(source).read_bytes()) if name in TELLING else ():
            self.told[name] += 1
            now, kept = version(Path(folder, file)), self.names.get(folder, {}).get(file)
            if now != kept or now not in self.contents:
                self.too_early.append(f"{folder}/{name} tells of {file}")
        self.replace(source, target)


def version(path: Any) -> tuple[int, int]:
    """A file that is written again has another number, or another date."""
    status = Path(path).stat()
    return status.st_ino, status.st_mtime_ns


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="names of open files are in /proc")


@needs_proc
def test_a_record_and_a_checkpoint_tell_only_of_what_lasts(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    words = ("--methods", "sr", "snapshot-ensemble", "--seeds", 1, "--keep-weights", "-q")
    made = run_here("--datasets", tiny, *words, "--results", tmp_path / "results")
    assert made.returncode == 0, made.stderr
    assert disk.told[RECORD] >= 8, "predictions, last layers and curves of several jobs"
    assert disk.told[CHECKPOINT] >= 4, "predictions after two epochs, in several checkpoints"
    assert not disk.too_early


@needs_proc
def test_a_list_of_parts_tells_only_of_what_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    files = PartFiles(Store(tmp_path), Path("job"))
    evidence = Evidence(Prediction(np.eye(3, dtype=np.float32)), np.arange(3))
    parts = [Part(name, None) for name in "ab"]
    assert len(list(files.all_of(parts, lambda index, part: evidence))) == 2
    assert disk.told[PARTS] == 1 + 2
    assert not disk.too_early


@needs_proc
def test_a_job_waits_for_the_disk_once_for_each_file_and_twice_for_its_folder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    fsync = os.fsync

    def note(file: int) -> None:
        waited.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        fsync(file)

    monkeypatch.setattr(os, "fsync", note)
    made = run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "-q", "--results", tmp_path / "results",
                    "--set", "checkpoint_seconds=60")  # fmt: skip
    assert made.returncode == 0, made.stderr
    (record,) = (tmp_path / "results").glob("tiny/*/*/seed-0/record.json")
    of_job = [path for path in waited if str(record.parent) in path]
    files = len(json.loads(record.read_bytes())["checksums"]) + 1
    assert of_job.count(str(record.parent)) == 2, "before the record, and after it"
    assert len(of_job) == files + 2
