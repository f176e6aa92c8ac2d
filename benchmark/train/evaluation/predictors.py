"""Predict the parts of an evaluation set with the final network of a run, or combine what members predict of them."""

from dataclasses import dataclass, replace

import torch

from benchmark.base.schema import build
from benchmark.data.evaluation.parts import EvaluationSet, Part
from benchmark.data.evaluation.splits import split_of
from benchmark.interface import Derived, Method
from benchmark.jobs.job import Job
from benchmark.measure.prediction import Evidence, Prediction, Stored
from benchmark.measure.sets.formulas import smallest
from benchmark.store.store import PREDICTION_VAL, of_part
from benchmark.train.accounting import Accounting
from benchmark.train.checkpoints import Checkpoints
from benchmark.train.context import Context
from benchmark.train.distributed import ALONE
from benchmark.train.evaluation.part_files import Predict
from benchmark.train.outcome.combine import as_evidence
from benchmark.train.outcome.finish import budget_of, finished_method, trainer_of
from benchmark.train.outcome.predict import Outputs
from benchmark.train.pulse import Pulse
from benchmark.train.trainer import Trainer


def predictor_of(job: Job, context: Context, device: torch.device, pulse: Pulse, opened: EvaluationSet) -> Predict:
    """Return what predicts the parts of a set for a job."""
    method = context.methods.get(job.method)
    if issubclass(method, Derived):
        return Combiner(job, context, method).predict
    trainer, network = finished_network(job.needs[0], context, device, pulse)
    return Predictor(trainer, network, len(opened.parts), budget_of(context, device, ALONE)).predict


def finished_network(run: Job, context: Context, device: torch.device, pulse: Pulse) -> tuple[Trainer, Method]:
    """Return the final network of a finished run with its trainer. Raise FileNotFoundError where it was not kept."""
    trainer = trainer_of(run, context, device, ALONE, pulse)
    saver = Checkpoints(Outputs(trainer, context.store, run.folder), Accounting(trainer))
    state = saver.restore()
    if state.epoch < trainer.job.last_epoch:
        raise FileNotFoundError(f"the final weights of {run.name} are not there; train it with --keep-weights")
    return trainer, finished_method(run, trainer, state)


class PulseOfParts(Pulse):
    """Counts the batches of all parts as one series."""

    def __init__(self, pulse: Pulse, index: int, parts: int) -> None:
        self.whole, self.index, self.parts = pulse, index, parts

    def __call__(self, done: int, of: int, epoch: int | None = None) -> None:
        self.whole(self.index * of + done, self.parts * of)


@dataclass(frozen=True)
class Predictor:
    """Predicts with a network."""

    trainer: Trainer
    method: Method
    num_parts: int
    budget: int
    """Bytes of images that may stay on the device."""

    def predict(self, index: int, part: Part) -> Evidence:
        """Return what the network predicts of a part."""
        data, device = self.trainer.data, self.trainer.device
        trainer = replace(self.trainer, pulse=PulseOfParts(self.trainer.pulse, index, self.num_parts))
        split = split_of(part, data, device, self.budget)
        tensors = trainer.predict(self.method, split)
        aux = {key: value.float().cpu().numpy() for key, value in tensors.aux.items()}
        logits = tensors.logits.float().cpu().numpy()
        prediction: Stored = Prediction(logits, None, aux)
        labels, ids = (smallest(each[: len(logits)]) for each in (split.labels.cpu().numpy(), split.ids))
        return Evidence(prediction, labels, None, ids)


@dataclass(frozen=True)
class Combiner:
    """Combines what the members of a run predict."""

    job: Job
    context: Context
    method: type[Derived]

    def predict(self, index: int, part: Part) -> Evidence:
        """Return the combination of the members' predictions of a part."""
        run, store = self.job.needs[0], self.context.store
        members = [store.read_prediction(need.folder, of_part(part.name)) for need in self.job.needs[1:]]
        validation = []
        if run.task.data.has_validation:
            validation = [store.read_prediction(need.folder, PREDICTION_VAL) for need in run.needs]
        config = build(self.method.Config, run.config, run.method)
        return as_evidence(self.method.combine(config, [member.prediction for member in members], validation), members)
