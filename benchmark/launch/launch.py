"""Run many jobs: in this process, in workers or on Ray. The store is the truth; others may work on it too."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.base.errors import DeviceLost
from benchmark.jobs.job import Job
from benchmark.launch.queue import ENDS, POLL_SECONDS, Asked, Event, Waiting, Watch
from benchmark.launch.ray_connection import connected
from benchmark.launch.ray_pool import RayPool
from benchmark.launch.supervise import run_watched
from benchmark.launch.workers import Pool
from benchmark.store.mirror import Mirror, tolerate_outage
from benchmark.train.run_job import Context

PUSH_SECONDS = 60.0


@dataclass(frozen=True)
class OnRay:
    """Which Ray, and what of it to use."""

    address: str
    num_cpus: int | None = None
    """Of a local one; None: all that the machine has."""
    gpus: bool = True
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""


def launch(
    jobs: Sequence[Job],
    context: Context,
    devices: Sequence[str],
    watch: Watch,
    asked: Asked,
    retries: int = 0,
    *,
    in_workers: bool = True,
    ray: OnRay | None = None,
) -> None:
    """Run every job, one worker process per entry of `devices`, or one after the other in this process, or on Ray.

    A job that fails costs only those that need it. Ends with KeyboardInterrupt when it was asked to.
    """
    store = context.store
    waiting = Waiting(list(jobs), watch, finished=lambda folder: store.state(folder) in ("done", "diverged"))
    if not context.keep_trunks:
        waiting.release = store.remove_snapshot
    if ray:
        with connected(ray.address, ray.num_cpus) as engine:
            RayPool(engine, context, waiting, asked, retries, ray.gpus, ray.mirror).run()
    elif in_workers:
        Pool(context, waiting, asked, retries).run(devices[: len(jobs)])
    else:
        run_here(context, waiting, asked, devices[0])


def push_results(watch: Watch, mirror: Mirror) -> Watch:
    """Return a watcher that also brings results to their URL: when a job ends, and checkpoints now and then."""
    pushed = time.monotonic()

    def watch_and_push(event: Event) -> None:
        nonlocal pushed
        watch(event)
        if event.kind in ENDS or time.monotonic() - pushed > PUSH_SECONDS:
            with tolerate_outage():
                mirror.push()
            pushed = time.monotonic()

    return watch_and_push


def run_here(context: Context, waiting: Waiting, asked: Asked, device: str) -> None:
    """Run the jobs one after the other in this process."""

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
