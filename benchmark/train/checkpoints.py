"""The state of a training, saved and brought back."""

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmark.files import Damaged, say
from benchmark.jobs import Job
from benchmark.provenance import environment
from benchmark.pulse import Interrupted
from benchmark.stale import installed_torch, torch_of
from benchmark.store import CHECKPOINT, Store, snapshot_name
from benchmark.trainer import State, Trainer, state_from_plain, state_to_plain

MOST_TIME_SPENT = 0.02
"""On saving within epochs: some states are large, and take long to write."""


@dataclass
class Checkpoints:
    """Saves the state of a training, at most once per `checkpoint_seconds`, and brings it back."""

    trainer: Trainer
    store: Store
    folder: Path
    only_fresh: bool = False
    """Whether to pass over what other code, or another torch, has made."""
    seconds_before: float = 0.0

    def __post_init__(self) -> None:
        trainer = self.trainer
        self.environments = [environment(trainer.device, trainer.job.task.threads, trainer.ranks.size)]
        self.codes = [self.trainer.job.code]
        self.checksums: dict[str, str] = {}
        self.started = self.saved = time.monotonic()
        self.branched: Job | None = None
        self.saved_at: tuple[int, int] | None = None
        self.saving_took = 0.0
        self.paces: dict[str, list[float]] = {}
        self.in_epochs = 0.0
        self.peak_bytes = 0
        self.operators: set[str] = set()
        self.aside = 0.0

    def seconds(self) -> float:
        """Time spent on the job, earlier attempts included as far as they were saved, without what only watches it."""
        return self.seconds_before + time.monotonic() - self.started - self.aside

    def note_epoch(self, phase: str, first: int, seconds: float) -> float:
        """Of an epoch that was trained from its step `first` on; returns what a whole one takes."""
        self.in_epochs += seconds
        steps = len(self.trainer.data.batch_sizes(self.trainer.job.task.batch_size))
        if first >= steps:
            return seconds  # all but its end had been trained before
        self.paces.setdefault(phase, []).append(seconds / (steps - first))
        return seconds * steps / (steps - first)

    def step_seconds(self) -> dict[str, float]:
        """Of each phase that was trained here: the median epoch, validation included, by its number of steps.

        Of all ranks together, for whoever reckons with the hours of devices.
        """
        return {phase: self.trainer.ranks.size * median(seconds) for phase, seconds in self.paces.items()}

    def restore(self) -> State:
        """From the first that can be used; else from the beginning. Only the first rank looks, and tells the others."""
        ranks = self.trainer.ranks
        state, payload = self.first_usable() if ranks.is_first else (None, None)
        payload = ranks.told(payload)
        if state is None:
            state = state_from_plain(self.trainer, read_plain(payload)) if payload else self.trainer.start()
        self.saved_at = (state.epoch, state.step)
        return state

    def first_usable(self) -> tuple[State | None, bytes | None]:
        for payload, maker, ours in self.candidates():
            plain = read_plain(payload)
            foreign = [code for code in plain["codes"] if code != maker.code]
            stale = foreign or {torch_of(each) for each in plain["environments"]} != {installed_torch()}
            checksums = plain["checksums"] if ours else {}
            if (stale and self.only_fresh) or not self.predictions_stand(checksums):
                continue
            try:
                state = state_from_plain(self.trainer, plain)
            except (KeyError, RuntimeError) as error:
                if not foreign:
                    raise
                say(f"a checkpoint of other code does not fit any more ({error}); passed over")
                continue
            self.checksums.update(checksums)
            self.take_over(plain, foreign)
            self.branched = maker if maker is self.trainer.job.trunk else None
            return state, payload
        return None, None

    def candidates(self) -> Iterator[tuple[bytes, Job, bool]]:
        """The job's own checkpoints, that of the job it takes over, its trunk's snapshot.

        Each with what made it, and whether the predictions that it tells of are this job's own.
        """
        job = self.trainer.job
        yield from ((payload, job, True) for payload in self.store.checkpoints(self.folder))
        if job.folder != self.folder:
            yield from ((payload, job, False) for payload in self.store.checkpoints(job.folder, ours=False))
        if job.branches and job.trunk is not None:
            name = snapshot_name(job.warmup_epochs)
            found = self.store.checkpoints(job.trunk.snapshot_folder, name, ours=False)
            yield from ((payload, job.trunk, False) for payload in found)

    def predictions_stand(self, checksums: dict[str, str]) -> bool:
        """What was predicted before the checkpoint cannot be predicted again after it."""
        try:
            return all(self.store.read_checked(self.folder, *pair) is not None for pair in checksums.items())
        except Damaged as why:
            say(f"a prediction in '{self.store.root / self.folder}' is damaged ({why}); it is made again")
            return False

    def take_over(self, plain: dict[str, Any], foreign: Sequence[str]) -> None:
        self.seconds_before, self.peak_bytes = plain["seconds"], plain["peak_bytes"]
        self.environments = list(dict.fromkeys([*plain["environments"], *self.environments]))
        self.codes = list(dict.fromkeys([*foreign, *self.codes]))
        self.operators.update(plain.get("operators", []))  # which those of before do not have

    def save_snapshot(self, state: State) -> None:
        """For others to branch off. Which epoch was best so far counts from their own first epoch."""
        self.write(replace(state, best=None), self.trainer.job.snapshot_folder, snapshot_name(state.epoch))

    @contextmanager
    def saving(self, state: State) -> Iterator[None]:
        """Save where a training stands when it is interrupted, if that is not saved already."""
        try:
            yield
        except Interrupted:
            if self.saved_at != (state.epoch, state.step):
                self.save(state)
            raise

    def save_if_due(self, state: State, at_least: float = 0.0) -> None:
        if time.monotonic() - self.saved >= max(self.trainer.job.task.checkpoint_seconds, at_least):
            self.save(state)

    def save_within(self, state: State) -> None:
        """Within an epoch: a process that dies need not cost a long one."""
        self.save_if_due(state, at_least=self.saving_took / MOST_TIME_SPENT)

    def save(self, state: State) -> None:
        started = time.monotonic()
        self.write(state, self.folder, CHECKPOINT)
        self.saved, self.saved_at = time.monotonic(), (state.epoch, state.step)
        self.saving_took = self.saved - started

    def write(self, state: State, folder: Path, name: str) -> None:
        if self.trainer.ranks.is_first:
            self.store.write_checkpoint(folder, self.payload(state), name)

    def payload(self, state: State) -> bytes:
        spent = {
            "seconds": self.seconds(),
            "peak_bytes": self.peak_bytes,
            "operators": sorted(self.operators),
            "environments": self.environments,
            "codes": self.codes,
            "checksums": self.checksums,
        }
        buffer = io.BytesIO()
        torch.save({**state_to_plain(state), **spent}, buffer)
        return buffer.getvalue()


def read_plain(payload: bytes) -> dict[str, Any]:
    plain: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    return plain
