"""Add up the time, memory, machines and code that a training took, for the provenance of its record."""

import time
from dataclasses import replace
from statistics import median
from typing import Any

from benchmark.data.devices import used_memory
from benchmark.jobs.job import Job
from benchmark.store.provenance import Branch, Provenance, Timed
from benchmark.train.provenance import codes_of, environment
from benchmark.train.trainer import Trainer


class Accounting:
    """What a training took, together with the earlier attempts that its checkpoint continues."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.environments = [environment(trainer.device, trainer.job.task.threads, trainer.ranks.size)]
        self.codes = [trainer.job.code]
        self.operators: set[str] = set()
        """Operators that may give other bits the next time."""
        self.peak_bytes = 0
        self.trunk: Job | None = None
        """The shared warm-up that the training branched off."""
        self.started = time.monotonic()
        self.seconds_before = self.epochs_seconds = self.observers_seconds = 0.0
        self.step_paces: dict[str, list[float]] = {}
        """Seconds per step, with validation, of each epoch that was trained here, by phase."""

    def seconds(self) -> float:
        """Return the time spent on the job, without its observers; of earlier attempts, what was saved of it."""
        return self.seconds_before + time.monotonic() - self.started - self.observers_seconds

    def note_epoch(self, epoch: int, first_step: int, seconds: float) -> float:
        """Note an epoch that was trained from `first_step` on; return the seconds that a whole one takes."""
        phase = "warmup" if epoch < self.trainer.job.warmup_epochs else "own"
        self.epochs_seconds += seconds
        self.peak_bytes = max(self.peak_bytes, used_memory(self.trainer.device))
        steps = len(self.trainer.data_at(epoch).batch_sizes(self.trainer.job.task.batch_size))
        if first_step >= steps:
            return seconds  # all but its end had been trained before
        self.step_paces.setdefault(phase, []).append(seconds / (steps - first_step))
        return seconds * steps / (steps - first_step)

    def continue_from(self, saved: dict[str, Any], other_codes: list[str]) -> None:
        """Take over what a checkpoint says of the attempts before it."""
        self.seconds_before, self.peak_bytes = saved["seconds"], saved["peak_bytes"]
        self.environments = list(dict.fromkeys([*saved["environments"], *self.environments]))
        self.codes = list(dict.fromkeys([*other_codes, *self.codes]))
        self.operators.update(saved.get("operators", []))  # older checkpoints have none

    def for_checkpoint(self) -> dict[str, Any]:
        """Return what `continue_from` takes over."""
        return {
            "seconds": self.seconds(),
            "peak_bytes": self.peak_bytes,
            "operators": sorted(self.operators),
            "environments": self.environments,
            "codes": self.codes,
        }

    def for_record(self, job: Job, origin: Provenance, *, weights_kept: bool) -> Provenance:
        """Return the provenance of `job`, which begins with `origin`; it may be another job that takes over."""
        trained, ranks = self.trainer.job, self.trainer.ranks.size
        # Those of all ranks are added, as the forecast counts the hours of devices.
        step_seconds = {phase: ranks * median(paces) for phase, paces in self.step_paces.items()}
        return replace(
            origin,
            seconds=self.seconds(),
            epochs_seconds=self.epochs_seconds + self.observers_seconds,
            environments=self.environments,
            codes=codes_of(job, [(trained, self.codes)]),
            weights_kept=weights_kept,
            undetermined_operators=tuple(sorted(self.operators)),
            peak_bytes=self.peak_bytes or None,
            ranks=ranks,
            step_seconds=None if job.max_steps else Timed(self.trainer.device.type, step_seconds),
            branched_off=None if self.trunk is None else Branch(self.trunk.id, trained.warmup_epochs),
        )
