"""Run jobs so that whatever happens to one ends in an event: done, diverged, stopped or failed."""

import time
import traceback
from functools import partial
from typing import Any

import torch

from benchmark.base.errors import DeviceLost, NoRoom
from benchmark.base.files import NO_ROOM, cannot_write
from benchmark.data.devices import device_lost, free_memory, out_of_memory
from benchmark.jobs.job import Job
from benchmark.launch.queue import POLL_SECONDS, Asked, Event, Kind, Stop, Waiting, Watch
from benchmark.launch.torchrun import RankLost, run_on_ranks
from benchmark.train.context import Context
from benchmark.train.pulse import Interrupted
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Diverged

TO_LOWER = (
    "lower --data-budget, --jobs-per-device or --workers, then run the same command again; a smaller batch "
    "(--set batch_size=N) is another job"
)


def run_here(context: Context, waiting: Waiting, asked: Asked, device: str) -> None:
    """Run the waiting jobs one after the other in this process."""

    def handle(event: Event) -> None:
        waiting.handle(event)
        if event.values.get("device_lost"):
            raise DeviceLost(event.values["reason"])

    while waiting.jobs:
        if asked():
            raise KeyboardInterrupt
        job = waiting.take()
        if job is None:
            time.sleep(POLL_SECONDS)
        else:
            run_watched(job, context, device, handle, asked)


def run_watched(job: Job, context: Context, device: str, watch: Watch, asked: Asked) -> None:
    """Run a job unless another process does, and report what happened. A failure is stored beside the job."""
    try:
        with context.store.claim(job.folder) as ours:
            if ours:
                watch(Event("started", job))
            event = outcome(job, context, device, watch, asked) if ours else Event("busy", job)
    except OSError as error:  # not even a lock can be written
        event = Event("failed", job, describe_failure(job, context, device, error))
    watch(event)  # after the claim is given back: the watcher may end this process


def outcome(job: Job, context: Context, device: str, watch: Watch, asked: Asked) -> Event:
    """Run a job that this process has claimed, and return how it ended."""

    def report(kind: Kind, values: dict[str, Any]) -> bool:
        watch(Event(kind, job, values))
        return asked()

    try:
        run = run_on_ranks if shared_by_ranks(job, context) else run_job
        run(job, context, torch.device(device), partial(report, "epoch"), beat=partial(report, "step"))
        return Event("done", job)
    except (Stop, NoRoom):
        raise
    except Interrupted:
        return Event("stopped", job)
    except Diverged as error:
        return Event("diverged", job, {"reason": f"diverged: {error}"})
    except (Exception, SystemExit) as error:
        return Event("failed", job, describe_failure(job, context, device, error))


def shared_by_ranks(job: Job, context: Context) -> bool:
    """Tell whether several processes are to train a job. One is enough for a job that trains nothing, or is done."""
    return context.gpus_per_job > 1 and not job.needs and not context.store.has_record(job.folder)


def describe_failure(job: Job, context: Context, device: str, error: BaseException) -> dict[str, Any]:
    """Return the reason of a failure in one line, and write the whole traceback beside the job."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return {"reason": cannot_write(error), "no_room": True}
    reason = str(error) if isinstance(error, RankLost) else " ".join(f"{type(error).__name__}: {error}".split())
    if out_of_memory(error):
        reason = f"{device} is out of memory: {TO_LOWER} ({reason})"
        free_memory(torch.device(device))
    lost = device_lost(error, torch.device(device))
    if lost:
        reason = f"{device} is lost to this process: {reason}"
    try:
        context.store.write_error(job.folder, f"{traceback.format_exc()}\n{reason}\n")
    except OSError as another:
        reason = f"{reason}; and {cannot_write(another)}"
        return {"reason": reason, "no_room": another.errno in NO_ROOM, "device_lost": lost}
    return {"reason": reason, "died": lost or isinstance(error, RankLost), "device_lost": lost}
