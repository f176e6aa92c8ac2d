"""One job from its description to its record."""

import contextlib
import io
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmark.bound import follow
from benchmark.cache import Folders
from benchmark.data import DataSet, prepare
from benchmark.derive import combine, finished
from benchmark.devices import data_budget, start_memory, used_memory
from benchmark.interface import Derived
from benchmark.jobs import Job, Methods
from benchmark.outputs import Outputs, heading
from benchmark.provenance import environment, provenance
from benchmark.store import Store, snapshot_name
from benchmark.trainer import Diverged, State, Trainer, network_of, state_from_plain, state_to_plain, trainable

Report = Callable[[dict[str, Any]], None]
"""Called after each epoch with the numbers a person wants to see."""


@dataclass(frozen=True)
class Context:
    """What running a job needs beside its description. Sent to worker processes."""

    results: Path
    folders: Folders
    methods: Methods
    budget: int | None = None
    """Bytes of images that a job may keep on its device; None = a share of what is free there."""
    jobs_per_device: int = 1
    keep_weights: bool = False
    keep_features: bool = False
    keep_trunks: bool = False
    track_bound: bool = False
    """After each epoch, note the parts of the generalisation bound in the history."""
    awaited: frozenset[Path] = frozenset()
    """Folders of jobs whose final weights another job starts from; they go when the command ends."""

    @property
    def store(self) -> Store:
        return Store(self.results)


def run_job(job: Job, context: Context, device: torch.device, report: Report) -> None:
    """From a description to a record; continues from the last checkpoint, and does nothing for a finished job.

    A training that diverges raises Diverged, and its record says so: it would diverge again.
    """
    store = context.store
    if store.state(job.folder) in ("done", "diverged"):
        return
    make_deterministic(job.task.threads, device)
    start_memory(device)
    method = context.methods.get(job.method)
    if job.until:
        train_trunk(job, context, device, report)
        return
    try:
        if issubclass(method, Derived):
            record = combine(job, method, store)
        else:
            record = train(job, context, device, report)
    except Diverged as error:
        store.write_record(job.folder, {**heading(job), "diverged": str(error), "provenance": provenance()})
        store.tidy(job.folder)
        raise
    store.write_record(job.folder, record)
    if job.folder not in context.awaited:
        store.tidy(job.folder)


def train(job: Job, context: Context, device: torch.device, report: Report) -> dict[str, Any]:
    """Train, or take over what another job trained; predict and measure. Returns the record, to be written last."""
    store, owner = context.store, job.needs[0] if job.takes_over else job
    if job.takes_over:
        finished(store, owner)
    trainer = Trainer(owner, context.methods, load_data(job, context, device), device)
    saver = Checkpoints(trainer, store, job.folder)
    epochs = () if job.takes_over else job.task.evaluate_at  # of the training it takes over only the end is its own
    outputs = Outputs(trainer, store, job.folder, context.keep_features, epochs)
    state = run_epochs(saver, report, outputs, track_bound=context.track_bound)
    method = trainer.chosen(state)
    if job.takes_over:
        method = trainer.around(network_of(method), trainable(context.methods, job.method), job.config)
    record = {**heading(job), **outputs.measured(method), "notes": method.notes()}
    if context.track_bound:
        record["bound"] = vars(job.task.bound)
    store.write_history(job.folder, state.history)
    if context.keep_weights or job.folder in context.awaited:
        saver.save(state)
    spent = {"seconds": saver.seconds(), "environments": saver.environments, "weights_kept": context.keep_weights}
    if saver.peak_bytes:
        spent["peak_bytes"] = saver.peak_bytes
    if not job.max_steps:
        spent["step_seconds"] = {"device": device.type, **saver.step_seconds()}
    if saver.branched:
        spent["branched_off"] = {"job": saver.branched.id, "epoch": owner.warmup_epochs}
    return {**record, "checksums": outputs.checksums, "provenance": {**provenance(), **spent}}


def train_trunk(job: Job, context: Context, device: torch.device, report: Report) -> None:
    """The warm-up of other jobs. If it diverges, they will find out by themselves."""
    saver = Checkpoints(
        Trainer(job, context.methods, load_data(job, context, device), device), context.store, job.folder
    )
    with contextlib.suppress(Diverged):
        run_epochs(saver, report, track_bound=context.track_bound)
    context.store.remove_checkpoint(job.folder)


def load_data(job: Job, context: Context, device: torch.device) -> DataSet:
    budget = data_budget(device, context.jobs_per_device) if context.budget is None else context.budget
    data = prepare(job.task.data, context.folders, job.split_seed, device, budget, build=False)
    if data.sha256 != job.data_sha256:
        raise ValueError("the images have changed since this job was planned; run the command again")
    return data


def run_epochs(
    saver: "Checkpoints", report: Report, outputs: Outputs | None = None, *, track_bound: bool = False
) -> State:
    """From where a job stands to its last epoch. A snapshot is there before its epoch is reported or saved."""
    trainer, job = saver.trainer, saver.trainer.job
    state = saver.restore()
    while state.epoch < job.last_epoch:
        before, started = state.epoch, time.monotonic()
        try:
            state = trainer.run_epoch(state)
        except Diverged:
            saver.store.write_history(saver.folder, state.history)
            raise
        saver.paces.setdefault(phase_of(job, before), []).append(time.monotonic() - started)
        saver.peak_bytes = max(saver.peak_bytes, used_memory(trainer.device))
        if track_bound:
            started = time.monotonic()
            state.history[-1] |= follow_bound(trainer, state)
            saver.aside += time.monotonic() - started
        if state.epoch in job.snapshots:
            saver.save_snapshot(state)
        report({**state.history[-1], "epochs_done": state.epoch})
        if outputs is not None:
            for epoch in outputs.epochs:
                if before < epoch <= state.epoch:
                    outputs.write_epoch(state.method, epoch)
        saver.save_if_due(state)
    return state


def follow_bound(trainer: Trainer, state: State) -> dict[str, float]:
    job, network = trainer.job, network_of(state.method)
    return follow(state.method, network, trainer.data, job.task.eval_batch_size, job.task.bound, job.max_steps)


def phase_of(job: Job, epoch: int) -> str:
    return "warmup" if epoch < job.warmup_epochs else "own"


def make_deterministic(threads: int, device: torch.device) -> None:
    """Same bits on every run. On accelerators a few operations have no such version: they warn."""
    torch.set_num_threads(threads)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False


@dataclass
class Checkpoints:
    """Saves the state of a training at epoch ends, at most once per `checkpoint_seconds`, and brings it back."""

    trainer: Trainer
    store: Store
    folder: Path
    seconds_before: float = 0.0

    def __post_init__(self) -> None:
        self.environments = [environment(self.trainer.device, self.trainer.job.task.threads)]
        self.started = self.saved = time.monotonic()
        self.branched: Job | None = None
        self.paces: dict[str, list[float]] = {}
        self.peak_bytes = 0
        self.aside = 0.0

    def seconds(self) -> float:
        """Time spent on the job, earlier attempts included as far as they were saved, without what only watches it."""
        return self.seconds_before + time.monotonic() - self.started - self.aside

    def step_seconds(self) -> dict[str, float]:
        """Of each phase that was trained here: the median epoch, validation included, by its number of steps."""
        steps = self.trainer.data.num_batches(self.trainer.job.task.batch_size)
        return {phase: median(seconds) / steps for phase, seconds in self.paces.items()}

    def restore(self) -> State:
        """From the job's own checkpoint, that of the job it takes over, or its trunk's; else from the beginning."""
        payload = self.store.read_checkpoint(self.folder) or self.store.read_checkpoint(self.trainer.job.folder)
        payload = payload or self.trunk_payload()
        if payload is None:
            return self.trainer.start()
        plain = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
        self.seconds_before = plain["seconds"]
        self.peak_bytes = plain.get("peak_bytes", 0)
        self.environments = list(dict.fromkeys([*plain["environments"], *self.environments]))
        return state_from_plain(self.trainer, plain)

    def trunk_payload(self) -> bytes | None:
        """The state after the shared warm-up. Where it is missing, the job trains its warm-up itself."""
        job = self.trainer.job
        if not job.branches or job.trunk is None:
            return None
        payload = self.store.read_checkpoint(job.trunk.snapshot_folder, snapshot_name(job.warmup_epochs))
        self.branched = None if payload is None else job.trunk
        return payload

    def save_snapshot(self, state: State) -> None:
        """For others to branch off. Which epoch was best so far counts from their own first epoch."""
        name = snapshot_name(state.epoch)
        self.store.write_checkpoint(self.trainer.job.snapshot_folder, self.payload(replace(state, best=None)), name)

    def save_if_due(self, state: State) -> None:
        if time.monotonic() - self.saved >= self.trainer.job.task.checkpoint_seconds:
            self.save(state)

    def save(self, state: State) -> None:
        self.store.write_checkpoint(self.folder, self.payload(state))
        self.saved = time.monotonic()

    def payload(self, state: State) -> bytes:
        spent = {"seconds": self.seconds(), "peak_bytes": self.peak_bytes, "environments": self.environments}
        plain = {**state_to_plain(state), **spent}
        buffer = io.BytesIO()
        torch.save(plain, buffer)
        return buffer.getvalue()
