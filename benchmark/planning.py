"""What a command would do: checks before training, and the plan that --dry-run shows."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tabulate import tabulate

from benchmark.cache import Folders
from benchmark.config import TaskConfig
from benchmark.cost import Paces, device_hours
from benchmark.data import facts_of, load
from benchmark.devices import device_kind
from benchmark.errors import MissingData, UserError
from benchmark.interface import Method
from benchmark.jobs import Job, Methods, Suite
from benchmark.networks import Network, build_network
from benchmark.sources import Facts, Loaded
from benchmark.store import Store
from benchmark.trunks import share_warmups
from benchmark.units import text_from_bytes

ABSENT = "absent"
PART_OF_A_SET = 0.9
"""Classes differ in size, so that some of them may be a little less than the announced average."""
RECORD_BYTES = 40_000
STATES_PER_CHECKPOINT = 6
"""Weights, momentum, and a second network at the most, of the last epoch saved and of the one before."""
STATES_PER_SNAPSHOT = {"sgd": 2, "adam": 3, "adamw": 3}
"""Weights and what the optimiser keeps of each."""


Pace = Callable[[Sequence[Job]], Paces]
"""What a step of these jobs takes."""


@dataclass(frozen=True)
class Found:
    """What is known of a task's data before its jobs are planned."""

    facts: Facts
    sha256: str
    remark: str = ""
    """What a reader of the results should know of the data."""


def find_data(task: TaskConfig, folders: Folders, *, required: bool) -> Found:
    """A plan may be shown without the data, and makes no cache; its jobs then count as new."""
    try:
        loaded, sha256 = load(task.data, folders, build=required)
    except MissingData:
        if required:
            raise
        return Found(facts_of(task.data, None), ABSENT)
    return Found(facts_of(task.data, loaded), sha256, remark_on(task, loaded))


def remark_on(task: TaskConfig, loaded: Loaded) -> str:
    found, remarks = len(loaded.train), []
    announced = found if task.data.path else facts_of(task.data, None).num_train  # own data announce nothing
    if found < PART_OF_A_SET * announced:
        remarks.append(
            f"{found:,} of {announced:,} training images are there; results do not compare with those of the whole set"
        )
    if loaded.val is not None and not task.data.official_val:
        remarks.append("its own validation split is not used; data.official_val = true with data.val = 0 would")
    return "; ".join(remarks)


def check_recipe(task: TaskConfig, facts: Facts) -> None:
    """Whatever would fail every job of a task fails here, before anything runs."""
    empty_network(task, facts)
    if facts.num_train - round(task.data.val * facts.num_train) < 2:
        raise UserError(f"data.val = {task.data.val:g} leaves fewer than 2 of {facts.num_train} training images")
    if facts.num_test < 1:
        raise UserError(f"data.test_holdout = {task.data.test_holdout} leaves no test image; make it smaller")
    if task.augment.color_jitter and facts.floats:
        raise UserError(
            f"augment.color_jitter needs 8-bit images, and those of '{task.data.source}' are not; set it to 0"
        )


def check_ranks(suites: Sequence[Suite], methods: Methods, device: str) -> None:
    """What several GPUs cannot compute as one does is refused before anything trains."""
    jobs = [job for suite in suites for job in suite.jobs() if not job.needs]
    coupled = [job.label for job in jobs if couples_samples(job, methods)]
    if coupled:
        raise UserError(
            f"--gpus-per-job: the loss of {', '.join(dict.fromkeys(coupled))} couples the samples of a batch, and each "
            "GPU would see only its part; leave them out of --methods, or train them without --gpus-per-job"
        )
    synchronised = [suite.task.name for suite in suites if suite.task.sync_batchnorm]
    if synchronised and device_kind(device) != "cuda":
        raise UserError(
            f"sync_batchnorm of {', '.join(synchronised)} needs GPUs where --gpus-per-job is above 1; "
            "set sync_batchnorm=false, or leave out --gpus-per-job"
        )


def couples_samples(job: Job, methods: Methods) -> bool:
    """In its own phase or in its warm-up."""
    trained = [methods.get(each.method) for each in (job, job.trunk) if each is not None]
    return any(issubclass(method, Method) and method.couples_samples for method in trained)


def empty_network(task: TaskConfig, facts: Facts) -> Network:
    """The network without memory: shows a wrong name or size at once."""
    with torch.device("meta"):
        return build_network(task.network, facts.num_classes, facts.shape)


def describe_plan(suites: list[Suite], store: Store, *, share: bool, pace: Pace) -> dict[str, Any]:
    tasks = [describe_suite(suite, store, share, pace) for suite in suites]
    totals = {name: sum(task[name] for task in tasks) for name in ("epochs", "epochs_naive")}
    hours = [task["device_hours"] for task in tasks]
    totals["device_hours"] = None if None in hours else sum(hours)
    return {"tasks": tasks, "results": str(store.root), **totals}


def describe_suite(suite: Suite, store: Store, share: bool, pace: Pace) -> dict[str, Any]:
    task, facts = suite.task, suite.facts
    states = {job.folder: store.state(job.folder) for job in suite.jobs()}
    missing = [job for job in suite.jobs() if states[job.folder] in ("new", "partial")]
    to_run = share_warmups(missing, store) if share else missing
    paces = pace(to_run)
    changed = {job.folder: job for job in to_run}
    trunks = [job for job in to_run if job.until]
    listed = [*trunks, *(changed.get(job.folder, job) for job in suite.jobs())]
    images = facts.num_test + round(task.data.val * facts.num_train)
    prediction_bytes = images * (facts.num_classes + 1) * 4 + RECORD_BYTES
    weights = sum(parameter.numel() for parameter in empty_network(task, facts).parameters())
    snapshots = sum(len(job.snapshots) for job in to_run)
    return {
        "task": task.name,
        "data": "not cached" if suite.data_sha256 == ABSENT else "present",
        "jobs": [describe_job(job, states.get(job.folder) or store.state(job.folder), store) for job in listed],
        "impossible": {entry.label: entry.reason for entry in suite.entries if entry.reason},
        "epochs": sum(epochs_of(job, store) for job in to_run),
        "epochs_naive": sum(epochs_of(job, store) for job in missing),
        "disk_bytes": prediction_bytes * len(states),
        "checkpoint_bytes": 4 * weights * STATES_PER_CHECKPOINT,
        "snapshot_bytes": 4 * weights * STATES_PER_SNAPSHOT[task.optimizer.name] * snapshots,
        "network_parameters": weights,
        "device_hours": device_hours(to_run, paces, facts),
        "device_hours_naive": device_hours(missing, paces, facts),
    }


def describe_job(job: Job, state: str, store: Store) -> dict[str, Any]:
    return {
        "label": job.label,
        "method": job.method,
        "seed": job.seed,
        "job": job.id,
        "epochs": epochs_of(job, store),
        "warmup_epochs": job.warmup_epochs,
        "branches": job.branches,
        "state": state,
    }


def epochs_of(job: Job, store: Store) -> int:
    """What a job trains; one that takes over a finished run whose weights are gone trains it again."""
    need = job.needs[0].folder if job.takes_over else None
    if need is not None and store.state(need) == "done" and not store.has_checkpoint(need):
        return job.task.epochs
    return job.epochs


def plan_text(described: dict[str, Any]) -> str:
    texts = list(map(suite_text, described["tasks"]))
    if len(texts) > 1:
        saved = described["epochs_naive"] - described["epochs"]
        jobs = sum(len(task["jobs"]) for task in described["tasks"])
        texts.append(
            f"in all {jobs} jobs, {described['epochs']} epochs to train, {saved} saved by shared warm-ups"
            f"{hours_text(described['device_hours'])}"
        )
    return "\n\n".join(texts)


def hours_text(hours: float | None) -> str:
    if hours is None:
        return "; device-hours unknown: no earlier run of this task on this device (--probe measures a few steps)"
    return f"; about {hours:.1f} device-hours" if hours >= 0.1 else f"; about {60 * hours:.1f} device-minutes"


def suite_text(task: dict[str, Any]) -> str:
    rows = [
        [job["label"], job["seed"], job["state"], job["epochs"], job["warmup_epochs"] * job["branches"], job["job"]]
        for job in task["jobs"]
    ]
    grid = tabulate(rows, ["method", "seed", "state", "epochs", "branches off after", "job"], tablefmt="simple")
    counts = Counter(job["state"] for job in task["jobs"])
    states = ", ".join(f"{counts[state]} {state}" for state in ("done", "partial", "new"))
    states += f", {counts['diverged']} diverged" if counts["diverged"] else ""
    disk = {name: text_from_bytes(task[f"{name}_bytes"]) for name in ("disk", "checkpoint", "snapshot")}
    saved = f" ({task['epochs_naive']} without shared warm-ups)" if task["epochs"] < task["epochs_naive"] else ""
    snapshots = f", up to {disk['snapshot']} of snapshots" if task["snapshot_bytes"] else ""
    impossible = "".join(f"\n{label}: {reason}" for label, reason in task["impossible"].items())
    return (
        f"{task['task']} (data {task['data']}, network of {task['network_parameters']:,} parameters)\n{grid}\n"
        f"{len(task['jobs'])} jobs: {states}; {task['epochs']} epochs to train{saved}"
        f"{hours_text(task['device_hours'])}; about "
        f"{disk['disk']} of results, up to {disk['checkpoint']} per running job{snapshots}"
        f"{impossible}"
    )
