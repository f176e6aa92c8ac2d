"""Save the state of a training and restore it."""

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from benchmark.base.files import Damaged, say
from benchmark.jobs.job import Job
from benchmark.store.stale import installed_torch, torch_of
from benchmark.store.store import CHECKPOINT, snapshot_name
from benchmark.train.accounting import Accounting
from benchmark.train.outcome.predict import Outputs
from benchmark.train.pulse import Interrupted
from benchmark.train.trainer import (
    State,
    Trainer,
    averages_of,
    network_of,
    trained_names,
)

MOST_TIME_SPENT = 0.02
"""The share of time that saving within epochs may take: some states are large, and take long to write."""


@dataclass(frozen=True)
class Candidate:
    """A checkpoint that a job may continue from."""

    payload: bytes
    maker: Job
    """The job that trained it."""
    is_own: bool = False
    """Whether the predictions that it lists lie in this job's own folder."""

    @cached_property
    def content(self) -> dict[str, Any]:
        return read_plain(self.payload)

    @property
    def other_codes(self) -> list[str]:
        """Return the hashes of code that had a part in it and is not the code of today."""
        return [code for code in self.content["codes"] if code != self.maker.code]

    def is_fresh(self) -> bool:
        """Return whether the code and the torch of today made all of it."""
        made_with = {torch_of(environment) for environment in self.content["environments"]}
        return not self.other_codes and made_with == {installed_torch()}


@dataclass
class Checkpoints:
    """Saves the state of a training, at most once per `checkpoint_seconds`, and restores it.

    A checkpoint also holds the checksums of `outputs` and the sums of `accounting`, so that these continue too.
    """

    outputs: Outputs
    accounting: Accounting
    only_fresh: bool = False
    """Whether to pass over checkpoints that other code, or another torch, has made."""

    def __post_init__(self) -> None:
        self.trainer, self.store, self.folder = self.outputs.trainer, self.outputs.store, self.outputs.folder
        self.saved = time.monotonic()
        self.saved_at: tuple[int, int] | None = None
        self.saving_took = 0.0

    def restore(self) -> State:
        """Return the state of the first usable checkpoint, else a new one. The first rank reads it for all."""
        ranks = self.trainer.ranks
        state, payload = self.first_usable() if ranks.is_first else (None, None)
        payload = ranks.broadcast(payload)
        self.outputs.checksums.update(ranks.broadcast(self.outputs.checksums))  # all predict, or none does
        if state is None:
            state = state_from_plain(self.trainer, read_plain(payload)) if payload else self.trainer.start()
        self.saved_at = (state.epoch, state.step)
        return state

    def first_usable(self) -> tuple[State | None, bytes | None]:
        """Return the state and the bytes of the first checkpoint that can be continued; continue its accounts."""
        for candidate in self.candidates():
            state = self.state_in(candidate) if self.is_usable(candidate) else None
            if state is not None:
                if candidate.is_own:
                    self.outputs.checksums.update(candidate.content["checksums"])
                if candidate.maker is self.trainer.job.trunk:
                    self.accounting.trunk = candidate.maker
                self.accounting.continue_from(candidate.content, candidate.other_codes)
                return state, candidate.payload
        return None, None

    def candidates(self) -> Iterator[Candidate]:
        """Yield the job's own checkpoints, then those of the job it takes over, then the snapshot of its trunk."""
        job = self.trainer.job
        for payload in self.store.checkpoints(self.folder):
            yield Candidate(payload, job, is_own=True)
        if job.folder != self.folder:
            for payload in self.store.checkpoints(job.folder, ours=False):
                yield Candidate(payload, job)
        if job.stage_epochs and job.trunk is not None:
            for payload in self.store.checkpoints(job.trunk.folder, ours=False):
                yield Candidate(payload, job.trunk)
        if job.branches and job.trunk is not None:
            name = snapshot_name(job.warmup_epochs)
            for payload in self.store.checkpoints(job.trunk.snapshot_folder, name, ours=False):
                yield Candidate(payload, job.trunk)

    def state_in(self, candidate: Candidate) -> State | None:
        """Return the state in a checkpoint; None where other code made it and it does not fit any more."""
        try:
            return state_from_plain(self.trainer, candidate.content)
        except (KeyError, RuntimeError) as error:
            if not candidate.other_codes:
                raise
            say(f"a checkpoint of other code does not fit any more ({error}); it is not used")
            return None

    def is_usable(self, candidate: Candidate) -> bool:
        """Tell whether a checkpoint is fresh, if it must be, and has all averages and predictions begun before it."""
        if self.only_fresh and not candidate.is_fresh():
            return False
        content, job = candidate.content, self.trainer.job
        place = content["epoch"], content.get("step", 0)
        in_stage = job.stage_epochs and place > (job.warmup_epochs, 0)  # its averages are over
        if not in_stage and not averages_of(job).can_continue(content.get("averages", {}), *place):
            return False
        own = candidate.content["checksums"] if candidate.is_own else {}  # going on from it cannot make them again
        try:
            return all(self.store.read_checked(self.folder, *pair) is not None for pair in own.items())
        except Damaged as why:
            say(f"a prediction in '{self.store.root / self.folder}' is damaged ({why}); it is made again")
            return False

    def save_snapshot(self, state: State) -> None:
        """Save a state for other jobs to branch off. Their best epoch counts from their own first epoch.

        At the end of a training it is a second stage that begins there: with the epoch that is tested.
        """
        best = state.best if state.epoch == self.trainer.job.task.epochs else None
        self.write(replace(state, best=best), self.trainer.job.snapshot_folder, snapshot_name(state.epoch))

    @contextmanager
    def saving(self, state: State) -> Iterator[None]:
        """Save the state when the training is interrupted, unless it is saved already."""
        try:
            yield
        except Interrupted:
            if self.saved_at != (state.epoch, state.step):
                self.save(state)
            raise

    def save_if_due(self, state: State, *, within_epoch: bool = False) -> None:
        """Save after an epoch, or within one: a process that dies must not cost a long epoch."""
        at_least = self.saving_took / MOST_TIME_SPENT if within_epoch else 0.0
        if time.monotonic() - self.saved >= max(self.trainer.job.task.checkpoint_seconds, at_least):
            self.save(state)

    def save(self, state: State) -> None:
        started = time.monotonic()
        self.write(state, self.folder, CHECKPOINT)
        self.saved, self.saved_at = time.monotonic(), (state.epoch, state.step)
        self.saving_took = self.saved - started

    def write(self, state: State, folder: Path, name: str) -> None:
        """Write a state, and what else continues with it, as a checkpoint. The first rank does so for all."""
        if self.trainer.ranks.is_first:
            buffer, accounts = io.BytesIO(), self.accounting.for_checkpoint()
            torch.save({**state_to_plain(state), **accounts, "checksums": self.outputs.checksums}, buffer)
            self.store.make_lasting(self.folder, self.outputs.checksums)
            self.store.write_checkpoint(folder, buffer.getvalue(), name)


def read_plain(payload: bytes) -> dict[str, Any]:
    """Return the tensors and plain values of a checkpoint; no code of it is run."""
    plain: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    return plain


def state_to_plain(state: State) -> dict[str, Any]:
    """Return a state as tensors and plain values; the optimiser's state is listed by parameter name."""
    optimizer = {
        name: dict(state.optimizer.state[parameter])
        for name, parameter in state.method.named_parameters()
        if parameter in state.optimizer.state
    }
    scaler = None if state.scaler is None else state.scaler.state_dict()
    plain = {name: getattr(state, name) for name in ("epoch", "step", "sums", "history", "best")}
    plain |= {"method": state.method.state_dict(), "optimizer": optimizer, "scaler": scaler}
    if averages := state.averages.to_plain(trained_names(state.method)):
        plain["averages"] = averages
    if state.sharpness is not None:
        plain["sharpness"] = state.sharpness.to_plain()
    return plain


def state_from_plain(trainer: Trainer, plain: dict[str, Any]) -> State:
    """Return the state that `state_to_plain` described, in the phase of its epoch."""
    plain = {"step": 0, "sums": {}, **plain}  # older checkpoints were all made at the end of an epoch
    state, warmup = trainer.start(), trainer.job.warmup_epochs
    if warmup and (plain["epoch"], plain["step"]) > (warmup, 0):
        is_stage = trainer.job.stage_epochs
        state = trainer.begin_phase(network_of(state.method), warmup=False) if is_stage else trainer.branch(state)
    state.method.load_state_dict(plain["method"])
    load_optimizer(state, plain["optimizer"])
    if state.scaler is not None and plain["scaler"] is not None:
        state.scaler.load_state_dict(plain["scaler"])
    own_phase = (plain["epoch"], plain["step"]) > (warmup, 0)
    if own_phase or trainer.job.stage_epochs:  # else a trunk's averages are not those of what branches off it
        state.averages.from_plain(plain.get("averages", {}), trained_names(state.method), trainer.device)
    if state.sharpness is not None:
        state.sharpness.from_plain(plain.get("sharpness", {}))
    sums = {name: (total.to(trainer.device), count) for name, (total, count) in plain["sums"].items()}
    return replace(state, sums=sums, **{name: plain[name] for name in ("epoch", "step", "history", "best")})


def load_optimizer(state: State, by_name: Mapping[str, Mapping[str, Any]]) -> None:
    """Load the state of parameters into the optimiser, which knows what of it belongs on the device."""
    listed = (parameter for group in state.optimizer.param_groups for parameter in group["params"])
    numbers = {parameter: number for number, parameter in enumerate(listed)}
    parameters = dict(state.method.named_parameters())
    whole = state.optimizer.state_dict()
    whole["state"] |= {numbers[parameters[name]]: values for name, values in by_name.items()}
    state.optimizer.load_state_dict(whole)
