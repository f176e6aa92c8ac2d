"""Predict with a trained method, store the predictions, and return what a record says of them."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.data.dataset import Split
from benchmark.interface import Contestant, Method
from benchmark.jobs.job import Job
from benchmark.measure.evaluate import measure
from benchmark.measure.measures import Measures
from benchmark.measure.prediction import Classifier, Evidence, Prediction, Stored
from benchmark.store.measuring import made_by_now
from benchmark.store.prediction_file import at_epoch
from benchmark.store.record import Record
from benchmark.store.store import CLASSIFIER, PREDICTION_TRAIN, PREDICTION_VAL, Store
from benchmark.train.trainer import Diverged, Trainer, network_of

ROUNDING = 0.01
"""What logits may differ by, as a share of the largest: products of the GPU have ten bits where TF32 is on."""


def empty_record(job: Job) -> Record:
    """Return the record of a job, still without a result."""
    return Record(job.results_name, job.method, job.id, job.seed, job.identity(), label=job.label)


def with_result(record: Record, job: Job, measures: Measures) -> Record:
    """Return the record with measures. Those of a trial stand apart, so that nothing takes them for a test."""
    measured = replace(record, held_out=measures) if job.held_out else replace(record, measures=measures)
    return replace(measured, made_by=made_by_now(measured))


@dataclass(frozen=True)
class Outputs:
    """Predicts the splits of a job and stores the predictions. Owns the checksums of what a job has written."""

    trainer: Trainer
    store: Store
    folder: Path
    keep_features: bool = False
    epochs: tuple[int, ...] = ()
    """Numbers of epochs after which it predicts too."""
    checksums: dict[str, str] = field(default_factory=dict)
    """By file name: those of the predictions, also of earlier attempts, and of the history."""

    def measured(self, method: Method, record: Record) -> Record:
        """Store the final predictions; on the first rank, return the record with the measures of the test images."""
        data, job = self.trainer.data, self.trainer.job
        if self.keep_features:
            self.write(method, data.train, PREDICTION_TRAIN)
        if data.val is not None:
            self.write(method, data.val, PREDICTION_VAL)
        test = self.write(method, data.test, job.measured)
        if not job.max_steps:
            refuse_collapsed(test, job)
            self.write_classifier(method)
        if not self.trainer.ranks.is_first:
            return record
        earlier = {epoch: self.measured_at(epoch, method) for epoch in self.epochs}
        record = with_result(record, job, measure(test, method.scores(test.prediction)))
        return replace(record, num_train=len(data.train), at_epochs=earlier)

    def measured_at(self, epoch: int, method: Method) -> Measures:
        """Return the measures after an earlier epoch, from what was stored then, perhaps before an interruption."""
        name = at_epoch(self.trainer.job.measured, epoch)
        test = self.store.read_prediction(self.folder, name, self.checksums[name])
        in_warmup = epoch <= self.trainer.job.warmup_epochs  # another method trains that, without outputs of this one
        return measure(test, (Contestant if in_warmup else method).scores(test.prediction))

    def write_due(self, method: Method, epochs_done: int) -> None:
        """Write the test and validation predictions that are due by now and missing, perhaps after an interruption."""
        splits = {self.trainer.job.measured: self.trainer.data.test, PREDICTION_VAL: self.trainer.data.val}
        for epoch in self.epochs:
            for prediction, split in splits.items():
                name = at_epoch(prediction, epoch)
                if split is not None and epoch <= epochs_done and name not in self.checksums:
                    self.write(method, split, name)

    def write(self, method: Method, split: Split, name: str) -> Evidence:
        """Predict a split and store the prediction; return it with the labels."""
        data, tensors = self.trainer.data, self.trainer.predict(method, split, features=self.keep_features)
        aux = {key: value.float().cpu().numpy() for key, value in tensors.aux.items()}
        features = None if tensors.features is None else tensors.features.float().cpu().numpy()
        prediction: Stored = Prediction(tensors.logits.float().cpu().numpy(), features, aux)
        count = len(prediction.logits)
        posterior = data.posterior[:count] if split is data.test and data.posterior is not None else None
        evidence = Evidence(prediction, split.labels[:count].cpu().numpy(), posterior, split.ids[:count])
        refuse_malformed(evidence, data.num_classes)
        self.checksums[name] = self.store.write_prediction(self.folder, name, evidence)
        return evidence

    def write_classifier(self, method: Method) -> None:
        """Write the last layer of the tested network, where it alone makes the logits of a training's features.

        Several ranks, trials, and methods that take over another training leave none.
        """
        trainer, alone = self.trainer, self.trainer.ranks.size == 1
        if alone and not trainer.job.held_out and type(method).starts_from is None:
            size = trainer.job.task.eval_batch_size  # another shape would be compiled anew
            layer = last_layer(method, next(trainer.data.eval_batches(trainer.data.test, size, [0])))
            if layer is not None:
                self.checksums[CLASSIFIER] = self.store.write_classifier(self.folder, layer)


def last_layer(method: Method, images: Tensor) -> Classifier | None:
    """Return the last layer; None where a method's logits of these images are not Wf + b, as with scaled cosines."""
    head, num_classes = network_of(method).head, method.task.num_classes  # extra outputs are a layer of their own
    if type(head) is not nn.Linear or head.out_features != num_classes:
        return None
    method.eval()
    with torch.no_grad():
        prediction = method.predict(images)
    if prediction.features is None:
        return None
    bias = torch.zeros(num_classes) if head.bias is None else head.bias
    weight, offset, features, logits = (
        each.detach().float().cpu().numpy() for each in (head.weight, bias, prediction.features, prediction.logits)
    )
    if np.abs(features @ weight.T + offset - logits).max() > ROUNDING * np.abs(logits).max():
        return None
    return Classifier(weight, offset)


def refuse_malformed(evidence: Evidence, num_classes: int) -> None:
    """Raise ValueError for logits of a wrong shape, Diverged for some that are not finite."""
    logits, count = evidence.prediction.logits, len(evidence.labels)
    if logits.shape != (count, num_classes):
        raise ValueError(f"predicted logits have shape {logits.shape}, expected ({count}, {num_classes})")
    if not np.isfinite(logits).all():
        raise Diverged("the predicted logits are not finite")


def refuse_collapsed(test: Evidence, job: Job) -> None:
    """Raise Diverged where all images get the same class: the network has learnt nothing, and a mean would hide it."""
    predicted, kind = test.prediction.logits.argmax(axis=1), "held-out" if job.held_out else "test"
    if len(predicted) > 1 and len(np.unique(predicted)) == 1 and len(np.unique(test.labels)) > 1:
        raise Diverged(f"collapsed: every {kind} image is called class {predicted[0]}")
