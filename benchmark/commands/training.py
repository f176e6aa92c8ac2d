"""Training what is missing of some suites: the options of every command that does it, and the run itself."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cache import Folders
from benchmark.commands.options import amount, whole
from benchmark.errors import UserError
from benchmark.files import say
from benchmark.limits import Within
from benchmark.store import Store
from benchmark.units import counted

if TYPE_CHECKING:
    from benchmark.jobs import Job, Methods, Suite
    from benchmark.launch import OnRay
    from benchmark.runner import Context

FINISHED = ("done", "diverged")
MOST_WORKERS = 1024


def add_training(parser: argparse.ArgumentParser) -> None:
    add_placing(parser)
    parser.add_argument(
        "--retries",
        type=whole(Within(0, 100, "what dies so often does not come to an end")),
        default=1,
        metavar="N",
        help="how often to try a job again whose process died, e.g. for lack of memory (default: 1)",
    )
    parser.add_argument(
        "--redo-stale",
        action="store_true",
        help="do finished jobs again that another version of the code or of torch has made; without it they are used, "
        "and the tables say so",
    )
    parser.add_argument(
        "--max-steps",
        type=whole(Within(1, 10**6, "it is for a try; leave it out to train")),
        default=0,
        metavar="N",
        help="only a few steps and evaluation batches of each job, and one seed unless you name some, to try a "
        "configuration; never tabulated",
    )
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first job that fails")
    add_keeping(parser)
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print only failures")
    volume.add_argument("-v", "--verbose", action="store_true", help="a line per epoch")


def add_placing(parser: argparse.ArgumentParser) -> None:
    """Where jobs run, and how many at a time."""
    parser.add_argument(
        "--data-budget",
        type=amount,
        metavar="SIZE",
        help="images up to this size, e.g. 4GB, stay on the device during a job, the rest is streamed; results do not "
        "depend on it (default: half of the device's free memory, shared by its jobs)",
    )
    parser.add_argument(
        "--workers",
        type=whole(Within(0, MOST_WORKERS, "no machine holds so many processes")),
        metavar="N",
        help="jobs at a time, each in a process of its own (default: one per GPU, or one per core); 0: one after the "
        "other in this process, for a debugger; results do not depend on it",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="run the jobs on Ray: one of its own on this machine, or the cluster at ADDRESS (auto: the one that this "
        "machine belongs to; ray://HOST:10001: another); results do not depend on it (see docs/cluster.md)",
    )
    add_sharing(parser)


def add_sharing(parser: argparse.ArgumentParser) -> None:
    """Several jobs on a GPU, or several GPUs for a job."""
    parser.add_argument(
        "--jobs-per-device",
        type=whole(Within(1, 64, "no GPU holds so many processes")),
        default=1,
        metavar="N",
        help="jobs that share a GPU, where one is too small to fill it (default: 1)",
    )
    parser.add_argument(
        "--gpus-per-job",
        type=whole(Within(1, 64, "no machine has more GPUs")),
        default=1,
        metavar="N",
        help="train each job on N GPUs (on the CPU: in N processes); batch and learning rate stay those of the task "
        "(default: 1)",
    )


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """What is shared between jobs, and what stays when they are done."""
    parser.add_argument("--keep-weights", action="store_true", help="keep the final checkpoint of each job")
    parser.add_argument(
        "--no-shared-warmup",
        action="store_true",
        help="let every job train its own warm-up; the results are the same, it only takes longer",
    )
    parser.add_argument("--keep-trunks", action="store_true", help="keep the snapshots of shared warm-ups")
    parser.add_argument(
        "--keep-features", action="store_true", help="store features too, for the scores that are made of them"
    )
    parser.add_argument(
        "--track-bound",
        action="store_true",
        help="note intra-class variance and generalisation bound after each epoch in history.csv (constants: "
        "--set bound.FIELD=VALUE); costs a pass over all images, changes no result",
    )


def devices_for(suites: "Sequence[Suite]", arguments: argparse.Namespace, methods: "Methods") -> list[str]:
    """One for each job at a time. Refuses what cannot be done on this machine: ask before anything is written."""
    from benchmark.devices import choose_devices
    from benchmark.planning import check_ranks

    if arguments.gpus_per_job > 1:
        check_ranks(suites, methods, on_gpus=uses_gpus(arguments))
    if arguments.ray:
        check_ray(arguments)
        return []
    threads = max(suite.task.threads for suite in suites)
    workers = 1 if arguments.workers == 0 else arguments.workers
    return choose_devices(arguments.device, workers, threads, arguments.jobs_per_device, arguments.gpus_per_job)


def uses_gpus(arguments: argparse.Namespace) -> bool:
    """Those of this machine; what a cluster has, this machine cannot know yet."""
    from benchmark.devices import device_kind

    return (arguments.device if arguments.ray else device_kind(arguments.device)) not in ("cpu", "mps")


def check_writable(store: Store, arguments: argparse.Namespace) -> None:
    """Fail before any training if results could not be kept."""
    store.check_writable()
    if arguments.mirror:
        arguments.mirror.check_writable()


def check_ray(arguments: argparse.Namespace) -> None:
    """On Ray, tasks say what a job takes, and nodes what they have."""
    if arguments.device not in ("auto", "cpu"):
        raise UserError(f"--device {arguments.device}: with --ray expected auto or cpu; Ray deals out the GPUs")
    if arguments.jobs_per_device > 1:
        raise UserError("--jobs-per-device: with --ray say what share of a GPU a job takes: --set resources.gpus=0.5")
    if arguments.workers is not None and (arguments.ray != "local" or not arguments.workers):
        raise UserError("--workers: a cluster runs as many jobs as it can hold; leave it out, or give --ray alone")


def on_ray(jobs: "list[Job]", arguments: argparse.Namespace) -> "OnRay | None":
    from benchmark.launch import OnRay

    if not arguments.ray:
        return None
    threads = max((job.task.threads for job in jobs), default=1)
    num_cpus = arguments.workers * threads * arguments.gpus_per_job if arguments.workers else None
    return OnRay(arguments.ray, num_cpus, arguments.device != "cpu", arguments.mirror)


def run_suites(
    suites: "Sequence[Suite]",
    store: Store,
    arguments: argparse.Namespace,
    methods: "Methods",
    folders: Folders,
    devices: list[str],
) -> list[str]:
    """Run what is missing; returns a line for each job that has no result."""
    from benchmark.jobs import in_line
    from benchmark.long_plans import days_ahead
    from benchmark.provenance import new_models
    from benchmark.runner import Context

    jobs = in_line(job for suite in suites for job in suite.jobs())
    for model in new_models(devices, store):
        say(f"first run on {model}: `python run_all.py doctor` takes two minutes and shows whether it computes right")
    check_finished(jobs, store, redo_stale=arguments.redo_stale)
    if devices and not (arguments.max_steps or arguments.quiet):
        for line in days_ahead(suites, store, devices, share=not arguments.no_shared_warmup):
            say(line)
    if arguments.mirror and arguments.ray:
        arguments.mirror.push()  # workers elsewhere must not find what was moved aside
    context = Context(
        store.root.resolve(),
        folders,
        methods,
        budget=arguments.data_budget,
        jobs_per_device=max(Counter(devices).values(), default=1),
        gpus_per_job=arguments.gpus_per_job,
        keep_weights=arguments.keep_weights,
        keep_features=arguments.keep_features,
        keep_trunks=arguments.keep_trunks,
        track_bound=arguments.track_bound,
        only_fresh=arguments.redo_stale,
        awaited=frozenset(awaited_weights(jobs, store)),
        url=arguments.mirror.url if arguments.mirror and arguments.ray else "",
    )
    failures = run_jobs(jobs, context, devices, arguments)
    if arguments.max_steps:
        print(f"tried {counted(arguments.max_steps, 'step')} of each job; nothing is tabulated")
    return failures


def check_finished(jobs: "list[Job]", store: Store, *, redo_stale: bool) -> None:
    """What cannot be believed is done again; what could have come out otherwise, too, where that is asked for."""
    from benchmark.repair import set_damaged_aside, set_stale_aside, stale_jobs

    set_damaged_aside(jobs, store, say)
    stale = stale_jobs(jobs, store)
    if redo_stale:
        set_stale_aside(stale, store)
    if stale:
        done = "done again" if redo_stale else "used, with a note; --redo-stale does them again"
        say(f"{counted(len(stale), 'finished job')} made by another version of the code or of torch: {done}")


def report_failures(failures: Sequence[str]) -> int:
    """Say what failed; returns the exit code."""
    for line in failures:
        say(line)
    return 1 if failures else 0


def awaited_weights(jobs: "list[Job]", store: Store) -> "Iterator[Path]":
    """Trainings whose final weights a job that is not done yet takes over."""
    for job in jobs:
        if job.takes_over and store.state(job.folder) not in FINISHED:
            yield from (need.folder for need in job.needs)


def run_jobs(jobs: "list[Job]", context: "Context", devices: list[str], arguments: argparse.Namespace) -> list[str]:
    """Run what is not done yet; returns a line for each job that has no result."""
    from benchmark.trunks import remove_trunks, share_warmups

    store = context.store
    states = {job.folder: store.state(job.folder) for job in jobs}
    missing = [job for job in jobs if states[job.folder] not in FINISHED]
    to_run = missing if arguments.no_shared_warmup else share_warmups(missing, store)
    for folder, state in states.items():
        if state in FINISHED and not store.is_claimed(folder) and folder not in context.awaited:
            store.tidy(folder)
    asked = arguments.keep_weights or arguments.keep_features or arguments.track_bound
    if asked and len(missing) < len(jobs):
        say("finished jobs keep what they have: remove a record to train its job again")
    if not arguments.quiet:
        shared = f"; shared warm-ups to train first: {extra}" if (extra := len(to_run) - len(missing)) else ""
        say(f"{counted(len(jobs), 'job')}, {len(jobs) - len(missing)} done already{shared}")
    failed = run_missing(to_run, context, devices, arguments)
    for folder in context.awaited.difference(awaited_weights(jobs, store)):
        store.tidy(folder)
    if not arguments.keep_trunks:
        remove_trunks(jobs, store)
    earlier = [(job, "diverged in an earlier run") for job in jobs if states[job.folder] == "diverged"]
    return [failure_line(job, reason, store) for job, reason in (*earlier, *failed)]


def run_missing(
    jobs: "list[Job]", context: "Context", devices: list[str], arguments: argparse.Namespace
) -> "list[tuple[Job, str]]":
    """Run jobs under a person's eyes; returns those that have no result, with the reason."""
    from benchmark.interrupts import patient_interrupts
    from benchmark.launch import Stop, bringing, launch
    from benchmark.progress import Watcher

    at_a_time, tables = min(len(devices), len(jobs)), not arguments.max_steps
    watcher = Watcher(jobs, arguments.quiet, arguments.verbose, arguments.fail_fast, at_a_time, tables)
    watch = bringing(watcher, arguments.mirror) if arguments.mirror else watcher
    try:
        with patient_interrupts(watcher.stopping) as asked:
            here, ray = arguments.workers == 0, on_ray(jobs, arguments)
            launch(jobs, context, devices, watch, asked, arguments.retries, in_workers=not here, ray=ray)
    except Stop:
        pass
    finally:
        watcher.close()
    return watcher.failures


def failure_line(job: "Job", reason: str, store: Store) -> str:
    return f"failed: {job.name}: {reason} (see {store.root / job.folder})"
