"""What a command would do: checks before training, and the plan that --dry-run shows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tabulate import tabulate

from benchmark.cache import Folders, find, is_there
from benchmark.config import DataConfig, TaskConfig
from benchmark.data import facts_of, load
from benchmark.errors import MissingData, UserError
from benchmark.forecast import Forecast, Outlook
from benchmark.interface import Method
from benchmark.jobs import Job, Methods, Suite
from benchmark.networks import Network, build_network
from benchmark.preprocessing import preprocessing
from benchmark.sources import Facts, Loaded, get_source
from benchmark.store import Store
from benchmark.units import counted, device_hours, text_from_bytes, text_from_seconds

ABSENT = "absent"
SMALL_BYTES = 2**25
PART_OF_A_SET = 0.9
"""Classes differ in size, so that some of them may be a little less than the announced average."""
RECORD_BYTES = 40_000
MOST_WEIGHTS = 5 * 10**9
STATES_PER_CHECKPOINT = 6
"""Weights, momentum, and a second network at the most, of the last epoch saved and of the one before."""
STATES_PER_SNAPSHOT = {"sgd": 2, "adam": 3, "adamw": 3}
"""Weights and what the optimiser keeps of each."""


@dataclass(frozen=True)
class Found:
    """What is known of a task's data before its jobs are planned."""

    facts: Facts
    sha256: str
    remark: str = ""
    """What a reader of the results should know of the data."""
    preprocessing: str = ""
    """What is done to a user's own images."""
    state: str = "present"


def find_data(task: TaskConfig, folders: Folders, *, required: bool) -> Found:
    """A plan may be shown without the data, and makes no cache."""
    try:
        loaded, sha256 = load(task.data, folders, build=required)
    except MissingData:
        if required:
            raise
        return foreseen(task, folders)
    return Found(facts_of(task.data, loaded), sha256, remark_on(task, loaded), preprocessing(task, loaded))


def foreseen(task: TaskConfig, folders: Folders) -> Found:
    """Of data that is not cached: what is known without decoding much. Without its hash, jobs have no id yet."""
    facts, there = facts_of(task.data, None), is_there(task.data, folders)
    if not facts.sha256 and there and is_small(task.data, folders):
        with TemporaryDirectory() as place:
            loaded, sha256 = find(task.data, Folders(folders.data, Path(place)), tell=lambda text: None)
            return Found(facts, sha256, remark_on(task, loaded), preprocessing(task, loaded), "not cached")
    return Found(facts, facts.sha256 or ABSENT, "", preprocessing(task, None), "not cached" if there else ABSENT)


def is_small(config: DataConfig, folders: Folders) -> bool:
    """Whether to decode it just for a plan takes no more than a moment."""
    paths = get_source(config).files(config, folders.data)
    return all(path.is_file() for path in paths) and sum(path.stat().st_size for path in paths) <= SMALL_BYTES


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
    weights = sum(parameter.numel() for parameter in empty_network(task, facts).parameters())
    if weights > MOST_WEIGHTS:
        raise UserError(
            f"the network has {weights:,} weights on images of {facts.shape[1]}×{facts.shape[2]}; expected at most "
            f"{MOST_WEIGHTS:,}, as no device holds more: lower network.widths or data.image_size"
        )
    if facts.num_train - round(task.data.val * facts.num_train) < 2:
        raise UserError(f"data.val = {task.data.val:g} leaves fewer than 2 of {facts.num_train} training images")
    if facts.num_test < 1:
        raise UserError(f"data.test_holdout = {task.data.test_holdout} leaves no test image; make it smaller")
    if task.augment.color_jitter and facts.floats:
        raise UserError(
            f"augment.color_jitter needs 8-bit images, and those of '{task.data.source}' are not; set it to 0"
        )


def check_ranks(suites: Sequence[Suite], methods: Methods, *, on_gpus: bool) -> None:
    """What several GPUs cannot compute as one does is refused before anything trains."""
    jobs = [job for suite in suites for job in suite.jobs() if not job.needs]
    coupled = [job.label for job in jobs if couples_samples(job, methods)]
    if coupled:
        raise UserError(
            f"--gpus-per-job: the loss of {', '.join(dict.fromkeys(coupled))} couples the samples of a batch, and each "
            "GPU would see only its part; leave them out of --methods, or train them without --gpus-per-job"
        )
    synchronised = [suite.task.name for suite in suites if suite.task.sync_batchnorm]
    if synchronised and not on_gpus:
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


def describe_plan(outlooks: Sequence[Outlook], store: Store) -> dict[str, Any]:
    tasks = list(map(describe_suite, outlooks))
    totals = {name: sum(task[name] for task in tasks) for name in ("epochs", "epochs_naive")}
    hours = [task["device_hours"] for task in tasks]
    totals["device_hours"] = None if None in hours else sum(hours)
    return {"tasks": tasks, "results": str(store.root), **totals}


def describe_suite(outlook: Outlook) -> dict[str, Any]:
    suite, missing, to_run = outlook.suite, outlook.missing, outlook.to_run
    task, facts = suite.task, suite.facts
    changed = {job.folder: job for job in to_run}
    trunks = [job for job in to_run if job.until]
    listed = [*trunks, *(changed.get(job.folder, job) for job in suite.jobs())]
    images = facts.num_test + round(task.data.val * facts.num_train)
    prediction_bytes = images * (facts.num_classes + 1) * 4 + RECORD_BYTES
    weights = sum(parameter.numel() for parameter in empty_network(task, facts).parameters())
    snapshots = sum(len(job.snapshots) for job in to_run)
    return {
        "task": task.name,
        "data": suite.data_state,
        "download_bytes": facts.download_bytes if suite.data_state == ABSENT else 0,
        "jobs": [describe_job(job, outlook) for job in listed],
        "impossible": {entry.label: entry.reason for entry in suite.entries if entry.reason},
        "epochs": sum(outlook.epochs(job).total for job in to_run),
        "epochs_naive": sum(outlook.epochs(job).total for job in missing),
        "disk_bytes": prediction_bytes * len(outlook.states),
        "checkpoint_bytes": 4 * weights * STATES_PER_CHECKPOINT,
        "snapshot_bytes": 4 * weights * STATES_PER_SNAPSHOT[task.optimizer.name] * snapshots,
        "network_parameters": weights,
        "device_hours": outlook.hours(to_run),
        "device_hours_naive": outlook.hours(missing),
    }


def describe_job(job: Job, outlook: Outlook) -> dict[str, Any]:
    return {
        "label": job.label,
        "method": job.method,
        "seed": job.seed,
        "job": None if job.data_sha256 == ABSENT else job.id,
        "epochs": outlook.epochs(job).total,
        "warmup_epochs": job.warmup_epochs,
        "branches": job.branches,
        "state": outlook.states.get(job.folder) or outlook.store.state(job.folder),
    }


def describe_schedule(forecast: Forecast) -> dict[str, Any]:
    schedule, chain = forecast.schedule, forecast.schedule.critical_path
    return {
        "devices": dict(Counter(device.name for device in schedule.devices)),
        "makespan_seconds": schedule.makespan,
        "lower_bound_seconds": schedule.lower_bound if schedule.placed else 0.0,
        "utilisation": schedule.utilisation,
        "device_hours": schedule.device_seconds / 3600,
        "busy_hours": schedule.busy_seconds / 3600,
        "prices": {device.name: device.price for device in schedule.devices if device.price is not None},
        "cost": schedule.cost,
        "critical_path": [forecast.jobs[name].name for name in chain.names],
        "critical_path_seconds": chain.seconds,
        "unknown": list(forecast.unknown),
        "steps_only": list(forecast.steps_only),
        "jobs": [
            {"job": forecast.jobs[each.work.name].name, "device": each.device, "start": each.start, "end": each.end}
            for each in schedule.placed
        ],
    }


def schedule_text(described: dict[str, Any]) -> str:
    lines = [schedule_lines(described)] if described["jobs"] else []
    if described["unknown"]:
        names = described["unknown"]
        given = " ".join(f"{name}=SECONDS" for name in names)
        lines.append(
            f"not scheduled: {', '.join(names)}: no step time is known; add --probe, or --step-seconds {given}"
        )
    if not lines:
        lines.append("nothing to schedule: all jobs are done")
    return "\n".join([*lines, *described.get("figures", [])])


def schedule_lines(described: dict[str, Any]) -> str:
    devices = ",".join(f"{count}x{name}" for name, count in described["devices"].items())
    makespan, least, chain = (
        text_from_seconds(described[f"{name}_seconds"]) for name in ("makespan", "lower_bound", "critical_path")
    )
    prices = ", ".join(f"{name} {price:g}" for name, price in described["prices"].items())
    cost = f"; cost {described['cost']:,.2f} (an hour of {prices})" if prices else ""
    steps_only = described["steps_only"]
    left_out = [f"start-up and evaluation ({', '.join(steps_only)}: only the step time is known)"] if steps_only else []
    left_out += ["failures", "other people's jobs", "steps that are slower where jobs share a device, a disk or a host"]
    return (
        f"on {devices}: {makespan} from beginning to end (no order takes less than {least}), devices busy "
        f"{described['utilisation']:.0%} of {device_hours(described['device_hours'])}{cost}\n"
        f"critical path, {chain}: {' → '.join(described['critical_path'])}\n"
        f"not counted: {', '.join(left_out)}"
    )


def plan_text(described: dict[str, Any]) -> str:
    texts = list(map(suite_text, described["tasks"]))
    if len(texts) > 1:
        saved = described["epochs_naive"] - described["epochs"]
        jobs = sum(len(task["jobs"]) for task in described["tasks"])
        texts.append(
            f"in all {counted(jobs, 'job')}, {counted(described['epochs'], 'epoch')} to train, {saved:,} saved by "
            f"shared warm-ups{cost_text(described['device_hours'])}"
        )
    texts += [schedule_text(described["schedule"])] if "schedule" in described else []
    return "\n\n".join(texts)


def cost_text(hours: float | None) -> str:
    if hours is None:
        return "; device-hours unknown: no earlier run of this task on this device (--probe measures a few steps)"
    return f"; about {device_hours(hours)}"


def suite_text(task: dict[str, Any]) -> str:
    rows = [
        [
            job["label"],
            job["seed"],
            job["state"],
            job["epochs"],
            job["warmup_epochs"] * job["branches"],
            job["job"] or "–",
        ]
        for job in task["jobs"]
    ]
    grid = tabulate(rows, ["method", "seed", "state", "epochs", "branches off after", "job"], tablefmt="simple")
    counts = Counter(job["state"] for job in task["jobs"])
    states = ", ".join(f"{counts[state]} {state}" for state in ("done", "partial", "new"))
    states += f", {counts['diverged']} diverged" if counts["diverged"] else ""
    disk = {name: text_from_bytes(task[f"{name}_bytes"]) for name in ("disk", "checkpoint", "snapshot")}
    saved = f" ({task['epochs_naive']:,} without shared warm-ups)" if task["epochs"] < task["epochs_naive"] else ""
    snapshots = f", up to {disk['snapshot']} of snapshots" if task["snapshot_bytes"] else ""
    impossible = "".join(f"\n{label}: {reason}" for label, reason in task["impossible"].items())
    unnamed = any(job["job"] is None for job in task["jobs"])
    unknown = "\njob ids follow from the images, and are known when these are cached" if unnamed else ""
    return (
        f"{task['task']} ({data_text(task)}; network of {task['network_parameters']:,} parameters)\n{grid}\n"
        f"{counted(len(task['jobs']), 'job')}: {states}; {counted(task['epochs'], 'epoch')} to train{saved}"
        f"{cost_text(task['device_hours'])}; about "
        f"{disk['disk']} of results, up to {disk['checkpoint']} per running job{snapshots}"
        f"{unknown}{impossible}"
    )


def data_text(task: dict[str, Any]) -> str:
    if task["data"] != ABSENT:
        return f"data {task['data']}"
    size = task["download_bytes"]
    return f"data absent, {f'a download of {text_from_bytes(size)}' if size else 'no program can download it'}"
