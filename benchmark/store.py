"""The results folder: what is written is written whole, and a record is written last. It *is* "done"."""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.errors import UserError
from benchmark.prediction import Evidence, Prediction

RECORD, HISTORY, CHECKPOINT, ERROR = "record.json", "history.csv", "checkpoint.pt", "error.txt"
PREDICTION, PREDICTION_VAL, PREDICTION_TRAIN = "prediction.npz", "prediction-val.npz", "prediction-train.npz"


def at_epoch(name: str, epoch: int) -> str:
    """The file of a prediction that was made before the end of training."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{epoch}{dot}{suffix}"


def snapshot_name(epoch: int) -> str:
    return f"snapshot-{epoch}.pt"


@dataclass(frozen=True)
class Store:
    """A results folder. Jobs are named by their folder below it."""

    root: Path

    def check_writable(self) -> None:
        """Fail before any training if results could not be kept."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / f".probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise UserError(
                f"cannot write to results folder '{self.root}': {error.strerror}; name another with --results DIR"
            ) from None

    def state(self, folder: Path) -> str:
        """done: the record is there; diverged: it says that there is no result; partial: a checkpoint; new: nothing."""
        record = self.read_record(folder)
        if record is not None:
            return "diverged" if "diverged" in record else "done"
        return "partial" if self.has_checkpoint(folder) else "new"

    def has_checkpoint(self, folder: Path, name: str = CHECKPOINT) -> bool:
        return (self.root / folder / name).is_file()

    def remove_checkpoint(self, folder: Path) -> None:
        (self.root / folder / CHECKPOINT).unlink(missing_ok=True)

    def remove_snapshot(self, folder: Path, epoch: int) -> None:
        (self.root / folder / snapshot_name(epoch)).unlink(missing_ok=True)

    def remove_trunk(self, folder: Path) -> None:
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def read_record(self, folder: Path) -> dict[str, Any] | None:
        return read_json(self.root / folder / RECORD)

    def records(self, task: str) -> Iterator[dict[str, Any]]:
        """Of all finished jobs of a task, whatever command they belong to."""
        for path in sorted((self.root / task).glob(f"*/*/*/{RECORD}")):
            if (record := read_json(path)) is not None:
                yield record

    def write_record(self, folder: Path, record: Mapping[str, Any]) -> None:
        write_json(self.root / folder / RECORD, record)

    def write_prediction(self, folder: Path, name: str, evidence: Evidence) -> str:
        """Store a prediction beside its labels; returns its SHA-256."""
        prediction = evidence.prediction
        optional = {"features": prediction.features, "posterior": evidence.posterior}
        arrays = {"labels": evidence.labels, "logits": prediction.logits.astype(np.float32)}
        arrays |= {key: value for key, value in optional.items() if value is not None}
        arrays |= {f"aux.{key}": value for key, value in prediction.aux.items()}
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write_atomically(self.root / folder / name, buffer.getvalue())
        return hashlib.sha256(buffer.getvalue()).hexdigest()

    def read_prediction(self, folder: Path, name: str = PREDICTION) -> Evidence:
        with np.load(self.root / folder / name, allow_pickle=False) as arrays:
            aux = {key.removeprefix("aux."): arrays[key] for key in arrays if key.startswith("aux.")}
            prediction = Prediction(arrays["logits"], arrays.get("features"), aux)
            return Evidence(prediction, arrays["labels"], arrays.get("posterior"))

    def predictions(self, folder: Path) -> list[str]:
        return sorted(path.name for path in (self.root / folder).glob("prediction*.npz"))

    def checksum(self, folder: Path, name: str) -> str:
        return hashlib.sha256((self.root / folder / name).read_bytes()).hexdigest()

    def write_history(self, folder: Path, rows: Sequence[Mapping[str, float]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{value:.9g}" for key, value in row.items()} for row in rows)
        write_atomically(self.root / folder / HISTORY, text.getvalue().encode())

    def write_checkpoint(self, folder: Path, payload: bytes, name: str = CHECKPOINT) -> None:
        """The payload before its own SHA-256, which torch.load passes over: a damaged file is noticed when read."""
        write_atomically(self.root / folder / name, payload + hashlib.sha256(payload).digest())

    def read_checkpoint(self, folder: Path, name: str = CHECKPOINT) -> bytes | None:
        """The last whole checkpoint; None if there is none or it is damaged (it is then moved aside)."""
        path = self.root / folder / name
        if not path.is_file():
            return None
        content = path.read_bytes()
        payload, checksum = content[:-32], content[-32:]
        if hashlib.sha256(payload).digest() != checksum:
            path.replace(path.with_suffix(".damaged"))
            return None
        return payload

    def write_error(self, folder: Path, text: str) -> None:
        write_atomically(self.root / folder / ERROR, text.encode())

    def tidy(self, folder: Path) -> bool:
        """Remove what a finished job needs no more, also after a crash right behind its record; False if not done."""
        record = self.read_record(folder)
        if record is None:
            return False
        kept = record["provenance"].get("weights_kept", False)
        for path in (self.root / folder).iterdir():
            if path.name == ERROR or path.suffix == ".tmp" or (path.name == CHECKPOINT and not kept):
                path.unlink(missing_ok=True)
        return True

    def write_manifest(self, name: str, manifest: Mapping[str, Any]) -> None:
        write_json(self.root / "manifests" / f"{name}.json", manifest)

    def write_paper_manifest(self, name: str, manifest: Mapping[str, Any]) -> None:
        write_json(self.root / "paper" / f"{name}.json", manifest)

    def paper_manifests(self) -> list[dict[str, Any]]:
        """One for each published table that was asked for so far."""
        found = (read_json(path) for path in sorted((self.root / "paper").glob("*.json")))
        return [manifest for manifest in found if manifest is not None]

    def manifests(self) -> list[dict[str, Any]]:
        """What the commands run so far asked for, one per task; tables show exactly this."""
        found = (read_json(path) for path in sorted((self.root / "manifests").glob("*.json")))
        return [manifest for manifest in found if manifest is not None]


def write_atomically(path: Path, content: bytes) -> None:
    """A reader, or a restart after a crash at any instant, sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make a rename in a folder outlive a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no readable one."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def folder_of(task: str, method: str, job_id: str, seed: int) -> Path:
    return Path(task, method, job_id, f"seed-{seed}")
