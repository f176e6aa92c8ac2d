"""Store imported runs in a results folder: predictions, records and a manifest, as those of trained runs."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.files import remove
from benchmark.base.units import counted
from benchmark.imports.evidence import confidences, zero_labels
from benchmark.imports.fields import TEST, TRAIN, VAL, ImportedRun
from benchmark.measure.evaluate import measure
from benchmark.measure.prediction import Evidence
from benchmark.store.manifest import Manifest, ManifestEntry
from benchmark.store.measuring import made_by_now
from benchmark.store.prediction_file import LOG_OF_ZERO, packed
from benchmark.store.provenance import Imported, Provenance
from benchmark.store.record import Record, job_id
from benchmark.store.store import PREDICTION, PREDICTION_TRAIN, PREDICTION_VAL, RECORD, Store, folder_of

FILES = {TEST: PREDICTION, VAL: PREDICTION_VAL, TRAIN: PREDICTION_TRAIN}
COVERAGES = (100.0, 95.0, 90.0, 85.0, 80.0, 75.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0)
"""Rows of a table of imported runs, as the paper has them."""
Parts = Mapping[str, Evidence]
"""By part: test samples (empty name), val and train."""


@dataclass(frozen=True)
class Place:
    """Where a run is stored: the task, the method as a folder, and the id of its job."""

    task: str
    label: str

    @property
    def method(self) -> str:
        """Return the name of its folder. No file of methods/ has one that begins like this."""
        return f"imported-{re.sub(r'[^a-zA-Z0-9.+-]+', '_', self.label)}"

    @property
    def identity(self) -> dict[str, str]:
        return {"imported": self.label}

    @property
    def job(self) -> str:
        return job_id(self.identity)

    def folder(self, seed: int) -> Path:
        return folder_of(self.task, self.method, self.job, seed)

    def entry(self, seeds: Sequence[int]) -> ManifestEntry:
        return ManifestEntry(self.label, self.method, self.job, tuple(sorted(seeds)), imported=True, unpaired=True)


def file_checksums(parts: Parts) -> dict[str, str]:
    """Return the SHA-256 that the files of a run have, or will have."""
    return {FILES[part]: hashlib.sha256(packed(evidence)).hexdigest() for part, evidence in parts.items()}


def is_same(record: Record, checksums: Mapping[str, str], scores: Sequence[str]) -> bool:
    """Tell whether a record is that of a run with this content."""
    return record.checksums == checksums and list(record.measures.scores) == list(scores)


def make_record(
    run: ImportedRun, place: Place, parts: Parts, scores: Sequence[str], *, given: str, normalised: bool
) -> Record:
    """Return the record of an imported run, without checksums. `given` is what its predictions are."""
    evidence = parts[TEST]
    record = Record(
        place.task,
        place.method,
        place.job,
        run.seed,
        place.identity,
        label=place.label,
        measures=measure(evidence, confidences(parts, scores, run.file)),
        num_train=parts[TRAIN].num_samples if TRAIN in parts else None,
        notes=tuple(zero_notes(evidence)),
        provenance=Provenance(imported=Imported(run.file, run.sha256(), given, normalised)),
    )
    return replace(record, made_by=made_by_now(record))


def zero_notes(evidence: Evidence) -> list[str]:
    """Return a note on samples whose class has probability 0, if there are any."""
    count = zero_labels(evidence)
    if not count:
        return []
    samples = counted(count, "test sample has", "test samples have")
    return [f"{samples} probability 0 for the true class: the NLL counts {-LOG_OF_ZERO:.0f} there, and not infinity"]


def store_run(record: Record, parts: Parts, folder: Path, store: Store) -> None:
    """Write the files of a run, the record last. One that is there is removed first: a record has its own files."""
    with store.claim(folder) as ours:
        if not ours:
            raise UserError(f"'{store.root / folder}': another process works on it; try again when it is done")
        remove(store.root / folder / RECORD)
        checksums = {FILES[part]: store.write_prediction(folder, FILES[part], each) for part, each in parts.items()}
        for name in set(FILES.values()) - set(checksums):
            (store.root / folder / name).unlink(missing_ok=True)
        store.write_record(folder, replace(record, checksums=checksums))


def extended(
    before: Manifest | None, places: Mapping[Place, Sequence[int]], task: str, title: str, *, paired: bool | None
) -> Manifest:
    """Return the manifest of a task with further imported runs. What it showed, it still shows.

    `paired` says whether the runs are pairs; None leaves it at what was said before, which is no at first.
    """
    manifest = before or Manifest(task, task, title or task, COVERAGES, next(iter(places)).label)
    entries = {entry.key: entry for entry in manifest.entries}
    for place, seeds in places.items():
        entry = place.entry(seeds)
        known = entries.get(entry.key, entry).with_seeds(seeds)
        entries[entry.key] = known if paired is None else replace(known, unpaired=not paired)
    return replace(manifest, entries=tuple(entries.values()), title=title or manifest.title)
