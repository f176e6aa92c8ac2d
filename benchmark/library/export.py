"""Hand out the predictions of finished runs, in the form in which `score` takes them."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.base.errors import UserError
from benchmark.base.files import write_atomically
from benchmark.measure.catalogue import OWN, POST_HOC, Unavailable, own_confidence
from benchmark.measure.labels import name_at
from benchmark.measure.prediction import CONFIDENCE, Evidence
from benchmark.store.finished import Finished
from benchmark.store.manifest import Manifest
from benchmark.store.record import Record
from benchmark.store.store import Store, folder_of

NOT_IN_NAMES = str.maketrans("/\\:", "___")


@dataclass(frozen=True)
class RunPredictions:
    """The predictions of one run: arrays by the names of their fields, as `score(arrays, method=…)` takes them."""

    task: str
    method: str
    seed: int
    arrays: Mapping[str, NDArray[Any]]
    scores: tuple[str, ...]
    """The confidences that are shown of it, the method's own first."""

    def save(self, folder: str | Path) -> Path:
        """Write a file METHOD-SEED.npz that `score` reads; return its path. One of another run is not replaced."""
        path = Path(folder) / f"{self.method.translate(NOT_IN_NAMES)}-{self.seed}.npz"
        told = {"method": np.array(self.method), "seed": np.array(self.seed), "scores": np.array(self.scores)}
        buffer = io.BytesIO()
        np.savez(buffer, **self.arrays, **told)  # type: ignore[arg-type]
        if path.exists() and path.read_bytes() != buffer.getbuffer():
            raise UserError(f"'{path}' is there with other content; name another folder")
        write_atomically(path, buffer.getbuffer())
        return path


def run_predictions(manifest: Manifest, store: Store) -> Iterator[RunPredictions]:
    """Yield the predictions of each run that a table shows. A run whose predictions are gone is left out."""
    for entry in manifest.entries:
        for seed in entry.seeds:
            folder = folder_of(manifest.task, entry.method, entry.job, seed)
            record = store.read_record(folder)
            if record is None or record.diverged is not None:
                continue
            run, label = Finished(folder, store, entry.epoch, record.checksums), name_at(entry.label, entry.coverage)
            try:
                arrays = part_arrays(run.test) | own_scores(run, record)
            except Unavailable:
                continue
            for part in ("validation", "train"):
                arrays |= further_part(run, part)
            yield RunPredictions(manifest.task, label, seed, arrays, tuple(record.measures.scores))


def own_scores(run: Finished, record: Record) -> dict[str, NDArray[Any]]:
    """Return the confidences that nobody else can compute: those of a plugin's method."""
    names = [name for name in record.measures.scores if name not in POST_HOC and name not in OWN]
    aux = run.test.prediction.aux
    return {
        f"{CONFIDENCE}{name}": own_confidence(name, run, record.method)
        for name in names
        if f"{CONFIDENCE}{name}" not in aux
    }


def part_arrays(evidence: Evidence) -> dict[str, NDArray[Any]]:
    """Return the arrays of one part by the names of their fields."""
    prediction = evidence.prediction
    fields = {"labels": evidence.labels if len(evidence.labels) else None, "ids": evidence.ids}
    fields |= {"features": prediction.features, "posterior": evidence.posterior}
    fields |= {"predicted": evidence.predicted, "loss": evidence.loss, "probabilities": prediction.probabilities}
    if evidence.has_logits and prediction.probabilities is None:
        fields["log_probabilities" if evidence.given == "log_probabilities" else "logits"] = prediction.logits
    arrays = {name: array for name, array in fields.items() if array is not None}
    for name, array in prediction.aux.items():
        if evidence.has_logits and name.removeprefix(CONFIDENCE) in POST_HOC:
            continue  # stored beside the logits of an imported set; `score` computes it
        arrays[name if name.startswith(CONFIDENCE) else f"output.{name}"] = array
    return arrays | {f"group.{name}": array for name, array in evidence.groups.items()}


def further_part(run: Finished, part: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of validation or training samples, where they were kept."""
    try:
        evidence = getattr(run, part)
    except Unavailable:
        return {}
    prefix = {"validation": "val", "train": "train"}[part]
    return {f"{prefix}.{name}": array for name, array in part_arrays(evidence).items()}
