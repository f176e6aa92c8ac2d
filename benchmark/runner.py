"""One job from its description to its record."""

import io
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.data import Split, prepare
from benchmark.evaluate import measure, measure_oracle
from benchmark.interface import Method
from benchmark.jobs import Job, Methods
from benchmark.prediction import Prediction, Stored
from benchmark.provenance import environment, provenance
from benchmark.store import PREDICTION, Store
from benchmark.trainer import Diverged, State, Trainer, state_from_plain, state_to_plain

PREDICTION_VAL = "prediction-val.npz"

Report = Callable[[dict[str, Any]], None]
"""Called after each epoch with the numbers a person wants to see."""


@dataclass(frozen=True)
class Context:
    """What running a job needs beside its description. Sent to worker processes."""

    results: Path
    data_dir: Path
    methods: Methods
    keep_weights: bool = False

    @property
    def store(self) -> Store:
        return Store(self.results)


def run_job(job: Job, context: Context, device: torch.device, report: Report) -> None:
    """Train, predict, measure, record; continues from the last checkpoint, and does nothing for a finished job."""
    store = context.store
    if store.state(job.folder) == "done":
        return
    make_deterministic(job.task.threads, device)
    started = time.monotonic()
    data = prepare(job.task.data, context.data_dir, job.seed, device)
    trainer = Trainer(job, context.methods, data, device)
    saver = Checkpoints(trainer, store, started)
    state = saver.restore()
    while state.epoch < job.task.epochs:
        state = trainer.run_epoch(state)
        report({**state.history[-1], "epochs_done": state.epoch})
        saver.save_if_due(state)
    method = trainer.chosen(state)
    record = describe(job, method, trainer, store)
    store.write_history(job.folder, state.history)
    if context.keep_weights:
        saver.save(state)
    record["provenance"] |= {
        "seconds": saver.seconds(),
        "environments": saver.environments,
        "weights_kept": context.keep_weights,
    }
    store.write_record(job.folder, record)
    store.tidy(job.folder)


def make_deterministic(threads: int, device: torch.device) -> None:
    """Same bits on every run. On accelerators a few operations have no such version: they warn."""
    torch.set_num_threads(threads)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False


@dataclass
class Checkpoints:
    """Saves the state at epoch ends, at most once per `checkpoint_seconds`, and brings it back."""

    trainer: Trainer
    store: Store
    started: float
    seconds_before: float = 0.0

    def __post_init__(self) -> None:
        job = self.trainer.job
        self.environments = [environment(self.trainer.device, job.task.threads)]
        self.saved = self.started

    def seconds(self) -> float:
        """Time spent on the job, earlier attempts included as far as they were saved."""
        return self.seconds_before + time.monotonic() - self.started

    def restore(self) -> State:
        payload = self.store.read_checkpoint(self.trainer.job.folder)
        if payload is None:
            return self.trainer.start()
        plain = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
        self.seconds_before = plain["seconds"]
        self.environments = list(dict.fromkeys([*plain["environments"], *self.environments]))
        return state_from_plain(self.trainer, plain)

    def save_if_due(self, state: State) -> None:
        if time.monotonic() - self.saved >= self.trainer.job.task.checkpoint_seconds:
            self.save(state)

    def save(self, state: State) -> None:
        plain = {**state_to_plain(state), "seconds": self.seconds(), "environments": self.environments}
        buffer = io.BytesIO()
        torch.save(plain, buffer)
        self.store.write_checkpoint(self.trainer.job.folder, buffer.getvalue())
        self.saved = time.monotonic()


def describe(job: Job, method: Method, trainer: Trainer, store: Store) -> dict[str, Any]:
    """Predict and measure; stores the predictions and returns the record, which the caller writes last."""
    data = trainer.data
    test, labels = predicted(trainer, method, data.test)
    checksums = {PREDICTION: store.write_prediction(job.folder, PREDICTION, test, labels)}
    if data.val is not None:
        checksums[PREDICTION_VAL] = store.write_prediction(
            job.folder, PREDICTION_VAL, *predicted(trainer, method, data.val)
        )
    posterior = None if data.posterior is None else data.posterior[: len(labels)]
    record = {
        "task": job.task.name,
        "method": job.method,
        "job": job.id,
        "seed": job.seed,
        "identity": job.identity(),
        **measure(test.logits, labels, method.scores(test), posterior),
        "notes": method.notes(),
        "checksums": checksums,
        "provenance": provenance(),
    }
    if posterior is not None:
        record["oracle"] = measure_oracle(posterior, labels)
    return record


def predicted(trainer: Trainer, method: Method, split: Split) -> tuple[Stored, NDArray[np.int64]]:
    """The method's prediction on a split as numpy arrays, with the labels."""
    found = trainer.predict(method, split)
    aux = {name: value.float().cpu().numpy() for name, value in found.aux.items()}
    logits = found.logits.float().cpu().numpy()
    if not np.isfinite(logits).all():
        raise Diverged("the trained network's outputs are not finite")
    return Prediction(logits, None, aux), split.labels[: len(logits)].cpu().numpy()
