"""Describe the plan that --dry-run shows: as plain data for programs, and as text for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

from benchmark.base.units import counted, device_hours, text_from_bytes, text_from_seconds
from benchmark.data.images import Facts
from benchmark.forecast.outlook import Forecast, Outlook
from benchmark.jobs.evaluations import OF_PREDICTIONS
from benchmark.jobs.job import Job
from benchmark.jobs.suite import Suite
from benchmark.store.store import Store
from benchmark.train.preflight import ABSENT, empty_network

RECORD_BYTES = 40_000
JUDGED_BYTES = 16
"""Of each image of an evaluation set: its class, what is predicted, a confidence and the largest probability, and the
part that it belongs to."""
NUMBERED_BYTES = 3
"""Of each image whose logits are stored: its class again, and its number."""
STATES_PER_CHECKPOINT = 6
"""At the most: weights, momentum and a second network, of the last saved epoch and of the one before."""
STATES_PER_SNAPSHOT = {"sgd": 2, "adam": 3, "adamw": 3}
"""The weights, and what the optimiser stores for each of them."""


def describe_plan(outlooks: Sequence[Outlook], store: Store) -> dict[str, Any]:
    """Return the plan of all tasks as plain data, with its totals."""
    tasks = list(map(describe_suite, outlooks))
    totals = {name: sum(task[name] for task in tasks) for name in ("epochs", "epochs_naive")}
    untimed = [task["task"] for task in tasks if task["evaluates"] and task["device_hours"] is None]
    hours = [task["device_hours"] for task in tasks if task["task"] not in untimed]
    totals["device_hours"] = None if None in hours else sum(hours)
    return {"tasks": tasks, "results": str(store.root), **totals, "untimed": untimed}


def describe_suite(outlook: Outlook) -> dict[str, Any]:
    """Return the plan of one task as plain data: its jobs, epochs, device-hours and disk space."""
    suite, missing, to_run = outlook.suite, outlook.missing, outlook.to_run
    task, facts = suite.task, suite.facts
    changed = {job.folder: job for job in to_run}
    trunks = [job for job in to_run if job.until]
    listed = [*trunks, *(changed.get(job.folder, job) for job in suite.jobs())]
    weights = sum(parameter.numel() for parameter in empty_network(task, facts).parameters())
    snapshots = sum(len(job.snapshots) for job in to_run)
    alone = [outlook.epochs(job).total for job in missing]
    averaged = list(map(averaged_epochs, missing, alone))
    return {
        "task": suite.name,
        "evaluates": suite.evaluated is not None,
        "data": suite.data_state,
        "download_bytes": facts.download_bytes if suite.data_state == ABSENT else 0,
        "jobs": [describe_job(job, outlook) for job in listed],
        "impossible": {entry.label: entry.reason for entry in suite.entries if entry.reason},
        "epochs": sum(outlook.epochs(job).total for job in to_run),
        "epochs_naive": sum(alone) + sum(averaged),
        "averages": sum(epochs > 0 for epochs in averaged),
        "disk_bytes": result_bytes(suite) * len(outlook.states),
        "checkpoint_bytes": 0 if suite.evaluated else checkpoint_bytes(weights, to_run),
        "snapshot_bytes": 4 * weights * STATES_PER_SNAPSHOT[task.optimizer.name] * snapshots,
        "network_parameters": weights,
        "device_hours": outlook.hours(to_run),
        "device_hours_naive": outlook.hours(missing),
    }


def result_bytes(suite: Suite) -> int:
    """Return what the predictions and the record of a job take."""
    task, facts, evaluated = suite.task, suite.facts, suite.evaluated
    if evaluated is None:
        images = facts.num_test + round(task.data.val * facts.num_train)
        return images * (facts.num_classes + 1) * 4 + RECORD_BYTES
    return evaluated.num_images * (JUDGED_BYTES + table_bytes(evaluated.config.kind, facts)) + 2 * RECORD_BYTES


def table_bytes(kind: str, facts: Facts) -> int:
    """Return what an image of an evaluation set has for each class: logits in float32, or shares of people."""
    if kind in OF_PREDICTIONS:
        return 8 * facts.num_classes if kind == "humans" else 0
    return 4 * facts.num_classes + NUMBERED_BYTES


def checkpoint_bytes(weights: int, jobs: Sequence[Job]) -> int:
    return 4 * weights * (STATES_PER_CHECKPOINT + 2 * max((len(job.averages) for job in jobs), default=0))


def averaged_epochs(job: Job, own_epochs: int) -> int:
    """Return the epochs of a training whose weights a job averages and which is trained anyway; else 0."""
    shared = job.takes_over and job.task.averaging.is_on and not own_epochs
    return job.needs[0].last_epoch if shared else 0


def describe_job(job: Job, outlook: Outlook) -> dict[str, Any]:
    of_set = job.evaluates.sha256 if job.evaluates else ""
    return {
        "label": job.label,
        "method": job.method,
        "seed": job.seed,
        "job": None if ABSENT in (job.data_sha256, job.outliers_sha256, of_set) else job.id,
        "epochs": outlook.epochs(job).total,
        "warmup_epochs": job.warmup_epochs,
        "branches": job.branches,
        "state": outlook.states.get(job.folder) or outlook.store.state(job.folder),
    }


def describe_schedule(forecast: Forecast) -> dict[str, Any]:
    """Return a simulated run as plain data."""
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
        "untimed": list(forecast.untimed),
        "steps_only": list(forecast.steps_only),
        "jobs": [
            {"job": forecast.jobs[bar.work.name].name, "device": bar.device, "start": bar.start, "end": bar.end}
            for bar in schedule.placed
        ],
    }


def schedule_text(described: dict[str, Any]) -> str:
    """Return a simulated run as text, with what could not be simulated and the files of its figure."""
    lines, unknown = [schedule_lines(described)] if described["jobs"] else [], described["unknown"]
    if described["untimed"]:
        lines.append(f"not scheduled: {', '.join(described['untimed'])}: no run was evaluated on it on this device yet")
    if unknown:
        given = " ".join(f"{name}=SECONDS" for name in unknown)
        text = f"not scheduled: {', '.join(unknown)}: no step time is known; add --probe, or --step-seconds {given}"
        lines.append(text)
    return "\n".join([*(lines or ["nothing to schedule: all jobs are done"]), *described.get("figures", [])])


def schedule_lines(described: dict[str, Any]) -> str:
    """Return three lines: how long the run takes, its critical path, and what is not counted."""
    devices = ",".join(f"{count}x{name}" for name, count in described["devices"].items())
    makespan, least, chain = (
        text_from_seconds(described[f"{name}_seconds"]) for name in ("makespan", "lower_bound", "critical_path")
    )
    prices = ", ".join(f"{name} {price:g}" for name, price in described["prices"].items())
    cost = f"; cost {described['cost']:,.2f} (price per hour: {prices})" if prices else ""
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
    """Return the whole plan as text: each task, the totals of several tasks, the simulated run."""
    texts = list(map(suite_text, described["tasks"]))
    if len(texts) > 1:
        saved = described["epochs_naive"] - described["epochs"]
        jobs = sum(len(task["jobs"]) for task in described["tasks"])
        texts.append(
            f"in all {counted(jobs, 'job')}, {counted(described['epochs'], 'epoch')} to train, {saved:,} saved by "
            f"{what_is_shared(described['tasks'])}{cost_text(described['device_hours'])}{untimed_text(described)}"
        )
    if "schedule" in described:
        texts.append(schedule_text(described["schedule"]))
    return "\n\n".join(texts)


def what_is_shared(tasks: Sequence[dict[str, Any]]) -> str:
    """Return what saves epochs: warm-ups alone, or whole trainings of which averages are taken too."""
    return "shared trainings" if any(task["averages"] for task in tasks) else "shared warm-ups"


def untimed_text(described: dict[str, Any]) -> str:
    """Return which evaluations are not in the device-hours: only earlier ones can tell their time."""
    untimed = described["untimed"]
    return f", without {', '.join(untimed)}" if untimed and described["device_hours"] is not None else ""


def cost_text(hours: float | None, *, evaluates: bool = False) -> str:
    """Return the end of a sentence: the device-hours, or that they are not known."""
    if hours is None and evaluates:
        return "; device-hours unknown: no run was evaluated on it on this device yet"
    if hours is None:
        return "; device-hours unknown: no earlier run of this task on this device (--probe measures a few steps)"
    return f"; about {device_hours(hours)}"


def suite_text(task: dict[str, Any]) -> str:
    """Return the plan of one task as text: its data, a table of its jobs, and what they take."""
    jobs, hours = task["jobs"], cost_text(task["device_hours"], evaluates=task["evaluates"])
    lines = [
        f"{task['task']} ({data_text(task)}; network of {task['network_parameters']:,} parameters)",
        jobs_table(jobs),
        f"{counted(len(jobs), 'job')}: {states_text(jobs)}; {epochs_text(task)}{hours}; {disk_text(task)}",
    ]
    if any(job["job"] is None for job in jobs):
        lines.append("job ids depend on the images, and are known once the images are cached")
    lines += [f"{label}: {reason}" for label, reason in task["impossible"].items()]
    return "\n".join(lines)


def jobs_table(jobs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for job in jobs:
        branches_after = job["warmup_epochs"] * job["branches"]
        rows.append([job["label"], job["seed"], job["state"], job["epochs"], branches_after, job["job"] or "–"])
    return str(tabulate(rows, ["method", "seed", "state", "epochs", "branches off after", "job"], tablefmt="simple"))


def states_text(jobs: Sequence[dict[str, Any]]) -> str:
    counts = Counter(job["state"] for job in jobs)
    states = ["done", "partial", "new", *(["diverged"] if counts["diverged"] else [])]
    return ", ".join(f"{counts[state]} {state}" for state in states)


def epochs_text(task: dict[str, Any]) -> str:
    epochs, naive = task["epochs"], task["epochs_naive"]
    saved = f" ({naive:,} without {what_is_shared([task])})" if epochs < naive else ""
    return f"{counted(epochs, 'epoch')} to train{saved}"


def disk_text(task: dict[str, Any]) -> str:
    results, checkpoint, snapshots = (task[f"{name}_bytes"] for name in ("disk", "checkpoint", "snapshot"))
    text = f"about {text_from_bytes(results)} of results"
    if not checkpoint:
        return text
    text += f", up to {text_from_bytes(checkpoint)} per running job"
    return f"{text}, up to {text_from_bytes(snapshots)} of snapshots" if snapshots else text


def data_text(task: dict[str, Any]) -> str:
    if task["data"] != ABSENT:
        return f"data {task['data']}"
    size = task["download_bytes"]
    return f"data absent, {f'a download of {text_from_bytes(size)}' if size else 'no program can download it'}"
