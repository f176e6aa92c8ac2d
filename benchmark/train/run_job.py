"""Run one job: from its description to its record."""

import contextlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from benchmark.config.task import TaskConfig
from benchmark.data.devices import enter, start_memory
from benchmark.data.preprocessing import DIGITS
from benchmark.interface import Derived
from benchmark.jobs.job import Job, Methods, own_parts
from benchmark.store.curves import curve_checksum
from benchmark.store.provenance import Timed
from benchmark.store.record import Pixels, Record
from benchmark.store.store import HISTORY, snapshot_name
from benchmark.train.accounting import Accounting
from benchmark.train.checkpoints import Checkpoints
from benchmark.train.context import Context, Observer
from benchmark.train.determinism import make_deterministic, set_precision, undetermined_operators
from benchmark.train.distributed import ALONE, Ranks
from benchmark.train.evaluation.evaluate import evaluate
from benchmark.train.outcome.combine import combine, finished_record
from benchmark.train.outcome.finish import finished_method, load_data, trainer_of
from benchmark.train.outcome.predict import Outputs, empty_record
from benchmark.train.provenance import environment, process_age, provenance
from benchmark.train.pulse import Interrupted, Pulse, Report, silent
from benchmark.train.trainer import Diverged, State, Trainer

JOBS_HERE = itertools.count()
"""How many jobs this process has begun. The first also takes the time to start, load and compile what all jobs use."""


def run_job(
    job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks = ALONE, beat: Report = silent
) -> None:
    """Run a job and write its record. Continue from the last checkpoint; do nothing for a finished job.

    `report` is called at the end of each epoch, `beat` now and then within an epoch; either may return true to stop.
    A training that diverges raises Diverged, and its record says so: it would diverge again. The caller has claimed
    the job. Where several ranks run it, each calls this.
    """
    store = context.store
    record = store.read_record(job.folder)
    if record is None:
        age, started = 0.0 if next(JOBS_HERE) else process_age(), time.monotonic()
        load_as_planned(job, context.methods)
        device = prepare_device(job.task, device)
        method = context.methods.get(job.method)
        pulse = Pulse(beat, can_stop=ranks.size == 1)
        if job.until:
            train_trunk(job, context, device, report, ranks, pulse)
            return
        try:
            if job.evaluates:
                record = evaluate(job, context, device, pulse)
            elif issubclass(method, Derived):
                record = combine(job, method, store)
            else:
                record = train(job, context, device, report, ranks, pulse)
            if not job.max_steps:
                outside = age + time.monotonic() - started - record.provenance.epochs_seconds
                timed = Timed(device.type, {"first" if age else "later": outside})
                record = replace(record, provenance=replace(record.provenance, outside_seconds=timed))
        except Diverged as error:
            made_on = [environment(device, job.task.threads, ranks.size)]
            origin = replace(provenance(), environments=made_on, codes=[job.code])
            checksums = curve_checksum(job.folder, store)
            record = replace(empty_record(job), diverged=str(error), checksums=checksums, provenance=origin)
        store.write_record(job.folder, record)
    if record.diverged is not None or job.folder not in context.awaited:
        store.tidy(job.folder)
    if record.diverged is not None:
        raise Diverged(record.diverged)


def load_as_planned(job: Job, methods: Methods) -> None:
    """Load users' files for a job that needs one. Raise ValueError where one has changed since the job was planned.

    A job without a file of its own does without: a file that kills its process costs only the jobs that need it.
    """
    if job.source_sha256 is None and not job.own_parts:
        return
    methods.load()
    same = job.source_sha256 in (methods.source_hash(job.method), methods.bytes_hash(job.method))
    if not same or own_parts(job.task, methods) != job.own_parts:
        raise ValueError("a file of your own has changed since this job was planned; run the command again")


def train(job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks, pulse: Pulse) -> Record:
    """Train a job, or take over what another job trained; predict and measure. Return the record, still unwritten."""
    store, epochs = context.store, () if job.stage_epochs or job.takes_over else job.task.evaluate_at
    if job.takes_over:
        finished_record(store, job.needs[0])
    trainer = trainer_of(job, context, device, ranks, pulse)
    outputs = Outputs(trainer, store, job.folder, context.keep_features, epochs)
    accounting = Accounting(trainer)
    saver = Checkpoints(outputs, accounting, context.only_fresh)

    state = run_epochs(saver, report, context.observers)
    with saver.saving(state):
        method = finished_method(job, trainer, state)
    with saver.saving(state):
        record = outputs.measured(method, replace(empty_record(job), notes=[*extra_data(job), *method.notes()]))
    record = replace(record, labels_changed=trainer.data.labels_changed)
    if not job.task.data.mean:
        record = replace(record, pixels=Pixels(rounded(trainer.data.mean), rounded(trainer.data.std)))
    if context.track_bound:
        record = replace(record, bound=vars(job.task.bound))

    outputs.checksums[HISTORY] = store.write_history(job.folder, state.history)
    if context.keep_weights or job.folder in context.awaited:
        saver.save(state)
    origin = accounting.for_record(job, provenance(), weights_kept=context.keep_weights)
    return replace(record, checksums=outputs.checksums, provenance=origin)


def extra_data(job: Job) -> list[str]:
    """Return the note that a job saw more data than others, where it did."""
    name = Path(job.task.data.outliers).stem
    return [f"trained with extra data (the training images of '{name}')"] if job.outliers_sha256 else []


def rounded(values: torch.Tensor) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]


def train_trunk(job: Job, context: Context, device: torch.device, report: Report, ranks: Ranks, pulse: Pulse) -> None:
    """Train the warm-up that other jobs share. If it diverges, each of them will find out by itself."""
    store = context.store
    if all(store.has_checkpoint(job.folder, snapshot_name(epoch)) for epoch in job.snapshots):
        return
    trainer = Trainer(job, context.methods, load_data(job, context, device, ranks), device, ranks, pulse)
    saver = Checkpoints(Outputs(trainer, store, job.folder), Accounting(trainer), context.only_fresh)
    with contextlib.suppress(Diverged):
        run_epochs(saver, report, context.observers)
    store.remove_checkpoint(job.folder)


def run_epochs(saver: Checkpoints, report: Report, observers: Sequence[Observer]) -> State:
    """Train from the last checkpoint to the last epoch. When interrupted, save the state."""
    trainer, outputs, accounting, job = saver.trainer, saver.outputs, saver.accounting, saver.trainer.job
    state = saver.restore()
    with saver.saving(state):
        outputs.write_due(state.method, state.epoch)
    while state.epoch < job.last_epoch:
        with saver.saving(state):  # a second stage may begin with a pass over the images
            state = trainer.in_phase(state)
        with saver.saving(state), trainer.pulse.doing(partial(saver.save_if_due, state, within_epoch=True)):
            epoch, first_step, started = state.epoch, state.step, time.monotonic()
            try:
                with undetermined_operators(accounting.operators):
                    trainer.run_epoch(state)
            except Diverged:
                saver.store.write_history(saver.folder, state.history)
                raise
            seconds = accounting.note_epoch(epoch, first_step, time.monotonic() - started)
            for observe in observers:
                started = time.monotonic()
                state.history[-1] |= observe(trainer, state)
                accounting.observers_seconds += time.monotonic() - started
            if state.epoch in job.snapshots:  # before it is reported or saved
                saver.save_snapshot(state)
            outputs.write_due(state.method, state.epoch)
            saver.save_if_due(state)
            values = {**state.history[-1], "epochs_done": state.epoch, "seconds": seconds}
            if trainer.ranks.broadcast(report(values)):
                raise Interrupted
    return state


def prepare_device(task: TaskConfig, device: torch.device) -> torch.device:
    """Make a device current, with the task's precision, counting memory from here. Return it with its number."""
    make_deterministic(task.threads, device)
    set_precision(device, task.tf32)
    device = enter(device)
    start_memory(device)
    return device
