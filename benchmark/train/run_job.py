"""One job from its description to its record."""

import contextlib
import itertools
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmark.bound import follow
from benchmark.cache import Folders
from benchmark.checkpoints import Checkpoints
from benchmark.config import TaskConfig
from benchmark.data import DataSet, prepare
from benchmark.derive import combine, finished
from benchmark.determinism import make_deterministic, set_precision, undetermined_operators
from benchmark.devices import data_budget, enter, start_memory, used_memory
from benchmark.interface import Derived
from benchmark.jobs import Job, Methods
from benchmark.learning import curve_checksum
from benchmark.onlooker import Onlooker
from benchmark.outputs import Outputs, heading
from benchmark.preprocessing import DIGITS
from benchmark.provenance import codes_of, environment, process_age, provenance
from benchmark.pulse import Interrupted, Pulse, Report, silent
from benchmark.ranks import ALONE, Ranks
from benchmark.store import HISTORY, Store, snapshot_name
from benchmark.trainer import Diverged, State, Trainer, network_of, trainable

JOBS_HERE = itertools.count()
"""How many jobs this process has begun. The first bears its start, and all that is loaded or translated only once."""


@dataclass(frozen=True)
class Context:
    """What running a job needs beside its description. Sent to worker processes."""

    results: Path
    folders: Folders
    methods: Methods
    budget: int | None = None
    """Bytes of images that a job may keep on its device; None = a share of what is free there."""
    jobs_per_device: int = 1
    gpus_per_job: int = 1
    """Or processes, on the CPU."""
    keep_weights: bool = False
    keep_features: bool = False
    keep_trunks: bool = False
    track_bound: bool = False
    """After each epoch, note the parts of the generalisation bound in the history."""
    only_fresh: bool = False
    """Whether to begin anew where other code, or another torch, has begun."""
    awaited: frozenset[Path] = frozenset()
    """Folders of jobs whose final weights another job starts from; they go when the command ends."""

    base: Path | None = None
    """Where results are read that are not in `results`: an attempt writes to a folder of its own."""
    url: str = ""
    """Where workers of other machines find the results and leave theirs, if not in `results`."""

    onlooker: bool = False
    """Whether another process of the job does all the writing."""

    @property
    def store(self) -> Store:
        return (Onlooker if self.onlooker else Store)(self.results, self.base)


def run_job(
    job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks = ALONE, beat: Report = silent
) -> None:
    """From a description to a record; continues from the last checkpoint, and does nothing for a finished job.

    `report` hears of each epoch when it ends, `beat` now and then of what goes on within; either may say to stop.
    A training that diverges raises Diverged, and its record says so: it would diverge again. The job is claimed.
    Where several ranks run it, each calls this.
    """
    store = context.store
    if (record := store.read_record(job.folder)) is not None:
        if job.folder not in context.awaited:
            store.tidy(job.folder)
        if "diverged" in record:
            raise Diverged(record["diverged"])
        return
    age, started = 0.0 if next(JOBS_HERE) else process_age(), time.monotonic()
    device = prepare_device(job.task, device)
    method = context.methods.get(job.method)
    pulse = Pulse(beat, can_stop=ranks.size == 1)
    if job.until:
        train_trunk(job, context, device, report, ranks, pulse)
        return
    try:
        if issubclass(method, Derived):
            record = combine(job, method, store)
        else:
            record = train(job, context, device, report, ranks, pulse)
    except Diverged as error:
        made = {"environments": [environment(device, job.task.threads, ranks.size)], "codes": [job.code]}
        left = {"checksums": curve_checksum(job.folder, store), "provenance": provenance() | made}
        store.write_record(job.folder, {**heading(job), "diverged": str(error), **left})
        store.tidy(job.folder)
        raise
    if not job.max_steps:
        outside = age + time.monotonic() - started - record["provenance"].get("epochs_seconds", 0.0)
        record["provenance"]["outside_seconds"] = {"device": device.type, "first" if age else "later": outside}
    store.write_record(job.folder, record)
    if job.folder not in context.awaited:
        store.tidy(job.folder)


def train(
    job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks, pulse: Pulse
) -> dict[str, Any]:
    """Train, or take over what another job trained; predict and measure. Returns the record, to be written last."""
    store, owner = context.store, job.needs[0] if job.takes_over else job
    if job.takes_over:
        finished(store, owner)
    trainer = Trainer(owner, context.methods, load_data(job, context, device, ranks), device, ranks, pulse)
    saver = Checkpoints(trainer, store, job.folder, context.only_fresh)
    epochs = () if job.takes_over else job.task.evaluate_at  # of the training it takes over only the end is its own
    outputs = Outputs(trainer, store, job.folder, context.keep_features, epochs, saver.checksums)
    state = run_epochs(saver, report, pulse, outputs, track_bound=context.track_bound)
    method = trainer.chosen(state)
    if job.takes_over:
        method = trainer.around(network_of(method), trainable(context.methods, job.method), job.config)
    with saver.saving(state):
        record = {**heading(job), **outputs.measured(method), "notes": method.notes()}
    if not job.task.data.mean:
        measured = {"mean": trainer.data.mean, "std": trainer.data.std}
        record["measured"] = {
            name: [round(value, DIGITS) for value in each.tolist()] for name, each in measured.items()
        }
    if context.track_bound:
        record["bound"] = vars(job.task.bound)
    outputs.checksums[HISTORY] = store.write_history(job.folder, state.history)
    if context.keep_weights or job.folder in context.awaited:
        saver.save(state)
    spent = {
        "seconds": saver.seconds(),
        "epochs_seconds": saver.in_epochs + saver.aside,
        "environments": saver.environments,
        "codes": codes_of(job, [(owner, saver.codes)]),
        "weights_kept": context.keep_weights,
    }
    if saver.operators:
        spent["undetermined_operators"] = sorted(saver.operators)
    if saver.peak_bytes:
        spent["peak_bytes"] = saver.peak_bytes
    if ranks.size > 1:
        spent["ranks"] = ranks.size
    if not job.max_steps:
        spent["step_seconds"] = {"device": device.type, **saver.step_seconds()}
    if saver.branched:
        spent["branched_off"] = {"job": saver.branched.id, "epoch": owner.warmup_epochs}
    return {**record, "checksums": outputs.checksums, "provenance": {**provenance(), **spent}}


def train_trunk(job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks, pulse: Pulse) -> None:
    """The warm-up of other jobs. If it diverges, they will find out by themselves."""
    store = context.store
    if all(store.has_checkpoint(job.folder, snapshot_name(epoch)) for epoch in job.snapshots):
        return
    trainer = Trainer(job, context.methods, load_data(job, context, device, ranks), device, ranks, pulse)
    saver = Checkpoints(trainer, store, job.folder, context.only_fresh)
    with contextlib.suppress(Diverged):
        run_epochs(saver, report, pulse, track_bound=context.track_bound)
    store.remove_checkpoint(job.folder)


def load_data(job: Job, context: Context, device: torch.device, ranks: Ranks) -> DataSet:
    sharing = context.jobs_per_device * (ranks.size if device.type == "cpu" else 1)
    budget = data_budget(device, sharing) if context.budget is None else context.budget
    folders, config = context.folders, job.task.data
    data = prepare(config, folders, job.split_seed, device, budget, build=False, held_out=job.held_out)
    if data.sha256 != job.data_sha256:
        raise ValueError("the images have changed since this job was planned; run the command again")
    return data


def run_epochs(
    saver: Checkpoints, report: Report, pulse: Pulse, outputs: Outputs | None = None, *, track_bound: bool = False
) -> State:
    """From where a job stands to its last epoch. Interrupted, it saves where it stands."""
    trainer, job = saver.trainer, saver.trainer.job
    state = saver.restore()
    if outputs is not None:
        with saver.saving(state):
            outputs.write_due(state.method, state.epoch)
    while state.epoch < job.last_epoch:
        state = trainer.in_phase(state)
        with saver.saving(state), pulse.doing(partial(saver.save_within, state)):
            seconds = timed_epoch(saver, state, track_bound=track_bound)
            if state.epoch in job.snapshots:  # before it is reported or saved
                saver.save_snapshot(state)
            if outputs is not None:
                outputs.write_due(state.method, state.epoch)
            saver.save_if_due(state)
            told = {**state.history[-1], "epochs_done": state.epoch, "seconds": seconds}
            if trainer.ranks.told(report(told)):
                raise Interrupted
    return state


def timed_epoch(saver: Checkpoints, state: State, *, track_bound: bool) -> float:
    """Train an epoch, or the rest of one; returns the seconds of a whole one."""
    trainer = saver.trainer
    before, first, started = state.epoch, state.step, time.monotonic()
    try:
        with undetermined_operators(saver.operators):
            trainer.run_epoch(state)
    except Diverged:
        saver.store.write_history(saver.folder, state.history)
        raise
    seconds = saver.note_epoch(phase_of(trainer.job, before), first, time.monotonic() - started)
    saver.peak_bytes = max(saver.peak_bytes, used_memory(trainer.device))
    if track_bound:
        started = time.monotonic()
        state.history[-1] |= follow_bound(trainer, state)
        saver.aside += time.monotonic() - started
    return seconds


def follow_bound(trainer: Trainer, state: State) -> dict[str, float]:
    job, network = trainer.job, network_of(state.method)
    return follow(state.method, network, trainer.data, job.task.eval_batch_size, job.task.bound, job.max_steps)


def phase_of(job: Job, epoch: int) -> str:
    return "warmup" if epoch < job.warmup_epochs else "own"


def prepare_device(task: TaskConfig, device: torch.device) -> torch.device:
    """Make a device, with its number, ready for a job: current, of the task's precision, counting memory from here."""
    make_deterministic(task.threads, device)
    set_precision(device, task.tf32)
    device = enter(device)
    start_memory(device)
    return device
