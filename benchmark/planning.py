"""What a command would do: checks before training, and the plan that --dry-run shows."""

from collections import Counter
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from benchmark.augment import check_supported
from benchmark.config import TaskConfig
from benchmark.data import load
from benchmark.errors import MissingData, UserError
from benchmark.jobs import Job, Suite
from benchmark.networks import Network, build_network
from benchmark.sources import describe
from benchmark.store import Store

ABSENT = "absent"
RECORD_BYTES = 40_000
STATES_PER_CHECKPOINT = 3
"""Weights, momentum, and a second network at the most."""


def check_recipe(task: TaskConfig, data_sha256: str) -> None:
    """Whatever would fail every job of a task fails here, before anything runs."""
    if data_sha256 != ABSENT:
        check_supported(task.augment)
    empty_network(task)
    facts = describe(task.data)
    if facts.num_train - round(task.data.val * facts.num_train) < 2:
        raise UserError(f"data.val = {task.data.val:g} leaves fewer than 2 of {facts.num_train} training images")
    if facts.num_test < 1:
        raise UserError(f"data.test_holdout = {task.data.test_holdout} leaves no test image; make it smaller")


def empty_network(task: TaskConfig) -> Network:
    """The network without memory: shows a wrong name or size at once."""
    facts = describe(task.data)
    with torch.device("meta"):
        return build_network(task.network, facts.num_classes, facts.shape)


def hash_of_data(task: TaskConfig, data_dir: Path, *, required: bool) -> str:
    """The data's identity. A plan may be shown without the data; its jobs then count as new."""
    try:
        return load(task.data, data_dir.resolve(), download=required).sha256()
    except MissingData:
        if required:
            raise
        return ABSENT


def describe_plan(suites: list[Suite], store: Store) -> dict[str, Any]:
    return {"tasks": [describe_suite(suite, store) for suite in suites], "results": str(store.root)}


def describe_suite(suite: Suite, store: Store) -> dict[str, Any]:
    task, facts = suite.task, describe(suite.task.data)
    jobs = [
        {
            "label": job.label,
            "method": job.method,
            "seed": job.seed,
            "job": job.id,
            "epochs": epochs_of(job, store),
            "warmup_epochs": job.warmup_epochs,
            "state": store.state(job.folder),
        }
        for job in suite.jobs()
    ]
    images = facts.num_test + round(task.data.val * facts.num_train)
    prediction_bytes = images * (facts.num_classes + 1) * 4 + RECORD_BYTES
    weights = sum(parameter.numel() for parameter in empty_network(task).parameters())
    return {
        "task": task.name,
        "data": "absent" if suite.data_sha256 == ABSENT else "present",
        "jobs": jobs,
        "impossible": {entry.label: entry.reason for entry in suite.entries if entry.reason},
        "epochs": sum(job["epochs"] for job in jobs if job["state"] in ("new", "partial")),
        "disk_bytes": prediction_bytes * len(jobs),
        "checkpoint_bytes": 4 * weights * STATES_PER_CHECKPOINT,
        "network_parameters": weights,
    }


def epochs_of(job: Job, store: Store) -> int:
    """What a job trains; one that takes over a finished run whose weights are gone trains it again."""
    need = job.needs[0].folder if job.takes_over else None
    if need is not None and store.state(need) == "done" and not store.has_checkpoint(need):
        return job.task.epochs
    return job.epochs


def plan_text(described: dict[str, Any]) -> str:
    return "\n\n".join(map(suite_text, described["tasks"]))


def suite_text(task: dict[str, Any]) -> str:
    rows = [
        [job["label"], job["seed"], job["state"], job["epochs"], job["warmup_epochs"], job["job"]]
        for job in task["jobs"]
    ]
    grid = tabulate(rows, ["method", "seed", "state", "epochs", "of them warm-up", "job"], tablefmt="simple")
    counts = Counter(job["state"] for job in task["jobs"])
    states = ", ".join(f"{counts[state]} {state}" for state in ("done", "partial", "new"))
    states += f", {counts['diverged']} diverged" if counts["diverged"] else ""
    impossible = "".join(f"\n{label}: {reason}" for label, reason in task["impossible"].items())
    return (
        f"{task['task']} (data {task['data']}, network of {task['network_parameters']:,} parameters)\n{grid}\n"
        f"{len(task['jobs'])} jobs: {states}; {task['epochs']} epochs to train; about "
        f"{task['disk_bytes'] / 1e6:.1f} MB of results, up to {task['checkpoint_bytes'] / 1e6:.1f} MB per running job"
        f"{impossible}"
    )
