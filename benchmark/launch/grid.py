"""Train what is missing of some suites: on Ray, in workers or in this process. Others may work on it too."""

import importlib.util
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.base.program import program
from benchmark.base.signals import patient_interrupts
from benchmark.base.units import counted
from benchmark.data.cache import Folders
from benchmark.data.devices import choose_devices, device_kind
from benchmark.jobs.evaluations import needs_weights
from benchmark.jobs.job import Job, Methods
from benchmark.jobs.shared_warmup import remove_trunks, share_averages, share_warmups
from benchmark.jobs.suite import Suite
from benchmark.launch.event_files import check_tensorboard
from benchmark.launch.noting import noted, with_event_files
from benchmark.launch.on_ray.connection import connected
from benchmark.launch.on_ray.pool import RayPool
from benchmark.launch.progress import Watcher
from benchmark.launch.queue import ENDS, Asked, Event, Stop, Waiting, Watch
from benchmark.launch.repair import set_damaged_aside, set_stale_aside, stale_jobs
from benchmark.launch.supervise import run_here
from benchmark.launch.workers import Pool
from benchmark.store.mirror import Mirror, tolerate_outage
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.preflight import check_ranks
from benchmark.train.provenance import new_models

FINISHED = ("done", "diverged")
PUSH_SECONDS = 60.0


@dataclass(frozen=True)
class GridOptions:
    """How jobs are run, as the command line says it. Only `max_steps` changes what is computed."""

    device: str = "auto"
    data_budget: int | None = None
    workers: int | None = None
    ray: str | None = None
    jobs_per_device: int = 1
    gpus_per_job: int = 1
    retries: int = 1
    max_steps: int = 0
    redo_stale: bool = False
    fail_fast: bool = False
    share_warmups: bool = True
    keep_weights: bool = False
    keep_features: bool = False
    keep_trunks: bool = False
    track_bound: bool = False
    tensorboard: bool = False
    quiet: bool = False
    verbose: bool = False
    mirror: Mirror | None = None
    """Of the results, where they are at a URL."""

    @property
    def uses_gpus(self) -> bool:
        """Tell whether jobs run on GPUs. What a cluster has, this machine cannot know yet: it counts as having some."""
        return (self.device if self.ray else device_kind(self.device)) not in ("cpu", "mps")


def devices_for(suites: Sequence[Suite], options: GridOptions, methods: Methods) -> list[str]:
    """Return a device for each worker; none for Ray, which has its own. Refuse what cannot be done here."""
    if options.gpus_per_job > 1:
        check_ranks(suites, methods, on_gpus=options.uses_gpus)
    if options.ray:
        check_ray(options)
        return []
    threads = max(suite.task.threads for suite in suites)
    workers = 1 if options.workers == 0 else options.workers
    return choose_devices(options.device, workers, threads, options.jobs_per_device, options.gpus_per_job)


def check_ray(options: GridOptions) -> None:
    """Refuse a machine without Ray, and options that Ray decides itself: nodes and tasks say what there is."""
    if importlib.util.find_spec("ray") is None:
        raise UserError('--ray needs Ray, which is not installed: pip install "ray[client]"')
    if options.device not in ("auto", "cpu"):
        raise UserError(f"--device {options.device}: with --ray expected auto or cpu; Ray deals out the GPUs")
    if options.jobs_per_device > 1:
        raise UserError("--jobs-per-device: with --ray say what share of a GPU a job takes: --set resources.gpus=0.5")
    if options.workers is not None and (options.ray != "local" or not options.workers):
        raise UserError(
            "--workers: a cluster runs as many jobs as fit; leave it out, or use 1 or more with --ray alone"
        )


def check_writable(store: Store, options: GridOptions) -> None:
    """Raise an error before any training if results cannot be written."""
    if options.tensorboard:
        check_tensorboard()
    store.check_writable()
    if options.mirror:
        options.mirror.check_writable()


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


@dataclass(frozen=True)
class Grid:
    """Jobs to be run, and all that running them takes."""

    jobs: list[Job]
    store: Store
    folders: Folders
    methods: Methods
    devices: list[str]
    options: GridOptions

    def prepare(self) -> None:
        """Say which devices are new. Move aside what is damaged, and on request what other code has made."""
        for model in new_models(self.devices, self.store):
            say(f"first run on {model}: `{program()} doctor` shows in two minutes whether it computes right")
        set_damaged_aside(self.jobs, self.store)
        stale, redo = stale_jobs(self.jobs, self.store), self.options.redo_stale
        if redo:
            set_stale_aside(stale, self.store)
        if stale:
            done = "done again" if redo else "used, with a note; --redo-stale does them again"
            say(f"{counted(len(stale), 'finished job')} made by another version of the code or of torch: {done}")

    def run(self) -> list[str]:
        """Run what is not done yet. Return a line for each job that has no result."""
        options, store = self.options, self.store
        if options.mirror and options.ray:
            options.mirror.push()  # workers elsewhere must not find what was moved aside
        context = self.context()
        states = {job.folder: store.state(job.folder) for job in self.jobs}
        missing = share_averages([job for job in self.jobs if states[job.folder] not in FINISHED])
        to_run = share_warmups(missing, store) if options.share_warmups else missing
        for folder, state in states.items():
            if state in FINISHED and not store.is_claimed(folder) and folder not in context.awaited:
                store.tidy(folder)
        self.announce(len(missing), shared=len(to_run) - len(missing))
        with self.watched(to_run, context) as (watcher, waiting, asked):
            self.launch(waiting, context, asked)
        self.clean_up(context)
        earlier = [(job, "diverged in an earlier run") for job in self.jobs if states[job.folder] == "diverged"]
        return [
            f"failed: {job.name}: {why} (see {context.results / job.folder})"
            for job, why in (*earlier, *watcher.failures)
        ]

    def context(self) -> Context:
        """Return what every worker must know."""
        options = self.options
        return Context(
            self.store.root.resolve(),
            self.folders,
            self.methods,
            budget=options.data_budget,
            jobs_per_device=max(Counter(self.devices).values(), default=1),
            gpus_per_job=options.gpus_per_job,
            keep_weights=options.keep_weights,
            keep_features=options.keep_features,
            keep_trunks=options.keep_trunks,
            track_bound=options.track_bound,
            only_fresh=options.redo_stale,
            awaited=frozenset(self.awaited_weights()),
            url=options.mirror.url if options.mirror and options.ray else "",
        )

    def awaited_weights(self) -> Iterator[Path]:
        """Yield the trainings whose final weights a job that is not done yet takes over or evaluates."""
        for job in self.jobs:
            if (job.takes_over or needs_weights(job)) and self.store.state(job.folder) not in FINISHED:
                yield from job.needs[0].weights_folders if job.evaluates else (need.folder for need in job.needs)

    def announce(self, missing: int, shared: int) -> None:
        """Say how much there is to do."""
        options, count = self.options, len(self.jobs)
        wants_more = options.keep_weights or options.keep_features or options.track_bound
        if wants_more and missing < count:
            say("nothing is added to finished jobs; to train a finished job again, remove its record")
        if not options.quiet:
            warmups = f"; shared warm-ups to train first: {shared}" if shared else ""
            say(f"{counted(count, 'job')}, {count - missing} done already{warmups}")

    @contextmanager
    def watched(self, jobs: list[Job], context: Context) -> Iterator[tuple[Watcher, Waiting, Asked]]:
        """Let a person watch jobs that are run in the block, and stop them: with Ctrl-C, or at the first failure."""
        options = self.options
        at_a_time, tables = min(len(self.devices), len(jobs)), not options.max_steps
        watcher = Watcher(jobs, options.quiet, options.verbose, options.fail_fast, at_a_time, tables)
        watch = push_results(watcher, options.mirror) if options.mirror else watcher
        done_before = len(self.jobs) - sum(not job.until for job in jobs)
        try:
            with ExitStack() as listeners, patient_interrupts(watcher.stopping) as asked:
                watch = listeners.enter_context(noted(watch, watcher.seconds_left, jobs, done_before, context.store))
                if options.tensorboard:
                    watch = listeners.enter_context(with_event_files(watch, context.store))
                waiting = Waiting(list(jobs), watch, finished=lambda folder: context.store.state(folder) in FINISHED)
                if not options.keep_trunks:
                    waiting.release = context.store.remove_snapshot
                yield watcher, waiting, asked
        except Stop:
            pass
        finally:
            watcher.close()

    def launch(self, waiting: Waiting, context: Context, asked: Asked) -> None:
        """Run the waiting jobs: on Ray, one after the other in this process, or with a worker process per device.

        A job that fails costs only those that need it. Ends with KeyboardInterrupt when it was asked to.
        """
        options, jobs = self.options, waiting.jobs
        if options.ray:
            threads = max((job.task.threads for job in jobs), default=1)
            num_cpus = options.workers * threads * options.gpus_per_job if options.workers else None
            with connected(options.ray, num_cpus) as ray:
                RayPool(ray, context, waiting, asked, options.retries, options.device != "cpu", options.mirror).run()
        elif options.workers == 0:
            run_here(context, waiting, asked, self.devices[0])
        else:
            Pool(context, waiting, asked, options.retries).run(self.devices[: len(jobs)])

    def clean_up(self, context: Context) -> None:
        """Remove weights that no job waits for any more, and shared warm-ups."""
        for folder in context.awaited.difference(self.awaited_weights()):
            self.store.tidy(folder)
        if not self.options.keep_trunks:
            remove_trunks(self.jobs, self.store)
