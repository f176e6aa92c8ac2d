"""A trained method → stored predictions and what a record says of them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.data import Split
from benchmark.evaluate import measure
from benchmark.interface import Method
from benchmark.jobs import Job
from benchmark.prediction import Evidence, Prediction, Stored
from benchmark.store import PREDICTION_TRAIN, PREDICTION_VAL, Store, at_epoch
from benchmark.trainer import Diverged, Trainer


def heading(job: Job) -> dict[str, Any]:
    """What every record begins with."""
    return {
        "task": job.task.name,
        "method": job.method,
        "label": job.label,
        "job": job.id,
        "seed": job.seed,
        "identity": job.identity(),
    }


def told(job: Job, measured: dict[str, Any]) -> dict[str, Any]:
    """What a record says of measures. Those of a trial stand apart, so that nothing takes them for a test."""
    if not job.held_out:
        return measured
    return {"held_out": {"images" if name == "num_test" else name: value for name, value in measured.items()}}


@dataclass(frozen=True)
class Outputs:
    """Predicts the splits of a job and stores what is said."""

    trainer: Trainer
    store: Store
    folder: Path
    keep_features: bool = False
    epochs: tuple[int, ...] = ()
    """After so many epochs it predicts too."""
    checksums: dict[str, str] = field(default_factory=dict)

    def measured(self, method: Method) -> dict[str, Any]:
        """The final predictions stored, those on the test images measured, by the first rank alone."""
        data, job = self.trainer.data, self.trainer.job
        if self.keep_features:
            self.write(method, data.train, PREDICTION_TRAIN)
        if data.val is not None:
            self.write(method, data.val, PREDICTION_VAL)
        test = self.write(method, data.test, job.measured)
        if not job.max_steps:
            refuse_collapsed(test, job)
        if not self.trainer.ranks.is_first:
            return {}
        measured = {**measure(test, method.scores(test.prediction)), "num_train": len(data.train)}
        earlier = {str(epoch): self.measured_at(epoch, method) for epoch in self.epochs}
        return told(job, {**measured, "at_epochs": earlier} if earlier else measured)

    def measured_at(self, epoch: int, method: Method) -> dict[str, Any]:
        """From what was stored then, perhaps before an interruption."""
        name = at_epoch(self.trainer.job.measured, epoch)
        test = self.store.read_prediction(self.folder, name, self.checksums[name])
        return measure(test, method.scores(test.prediction))

    def write_due(self, method: Method, epochs_done: int) -> None:
        """The test and validation predictions that an unfinished training owes, be it for an interruption."""
        splits = {self.trainer.job.measured: self.trainer.data.test, PREDICTION_VAL: self.trainer.data.val}
        for epoch in (epoch for epoch in self.epochs if epoch <= epochs_done):
            for name, split in splits.items():
                if split is not None and at_epoch(name, epoch) not in self.checksums:
                    self.write(method, split, at_epoch(name, epoch))

    def write(self, method: Method, split: Split, name: str) -> Evidence:
        found = self.trainer.predict(method, split, features=self.keep_features)
        aux = {key: value.float().cpu().numpy() for key, value in found.aux.items()}
        features = None if found.features is None else found.features.float().cpu().numpy()
        prediction: Stored = Prediction(found.logits.float().cpu().numpy(), features, aux)
        count = len(prediction.logits)
        posterior = self.trainer.data.posterior if split is self.trainer.data.test else None
        truth = None if posterior is None else posterior[:count]
        evidence = Evidence(prediction, split.labels[:count].cpu().numpy(), truth, split.ids[:count])
        refuse_malformed(evidence, self.trainer.data.num_classes)
        self.checksums[name] = self.store.write_prediction(self.folder, name, evidence)
        return evidence


def refuse_malformed(evidence: Evidence, num_classes: int) -> None:
    logits, count = evidence.prediction.logits, len(evidence.labels)
    if logits.shape != (count, num_classes):
        raise ValueError(f"predicted logits have shape {logits.shape}, expected ({count}, {num_classes})")
    if not np.isfinite(logits).all():
        raise Diverged("the predicted logits are not finite")


def refuse_collapsed(test: Evidence, job: Job) -> None:
    """A network that says the same class of everything has learnt nothing; its mean would hide it."""
    predicted, kind = test.prediction.logits.argmax(axis=1), "held-out" if job.held_out else "test"
    if len(predicted) > 1 and len(np.unique(predicted)) == 1 and len(np.unique(test.labels)) > 1:
        raise Diverged(f"collapsed: every {kind} image is called class {predicted[0]}")
