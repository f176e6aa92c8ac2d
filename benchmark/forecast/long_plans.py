"""A plan that takes days on this machine is said before it starts, with what to use instead."""

from collections.abc import Iterator, Sequence

import torch

from benchmark.cost import Paces, known_paces, rough_paces, steps_per_epoch
from benchmark.devices import default_device
from benchmark.forecast import look_ahead
from benchmark.jobs import Job, Suite
from benchmark.store import Store
from benchmark.tasks import task_names
from benchmark.units import DAY, counted, two_digits

SLOWEST_STEP = 20.0
"""Seconds. A plan that would not take a day even so need not be looked at."""


def days_ahead(suites: Sequence[Suite], store: Store, devices: Sequence[str], *, share: bool) -> Iterator[str]:
    """A line for each task that keeps these devices busy for more than a day."""
    kind = torch.device(devices[0]).type
    for suite in suites:
        if most_seconds(suite) < DAY * len(devices):
            continue

        def pace(jobs: Sequence[Job], suite: Suite = suite) -> Paces:
            known = known_paces(jobs, store, kind)
            guess = kind == "cpu" and not known.seconds
            return rough_paces(suite.task, suite.facts, torch.device("cpu")) if guess else known

        outlook = look_ahead(suite, store, pace, share=share)
        days = (outlook.hours(outlook.to_run) or 0.0) * 3600 / DAY / len(devices)
        if days > 1:
            at_a_time = f"{len(devices)} at a time" if len(devices) > 1 else "one after the other"
            jobs = counted(len(outlook.missing), "job")
            yield (
                f"{suite.task.name}: {jobs}, {at_a_time}, take about {two_digits(days)} days on "
                f"this machine's {kind.upper()}; {instead_of(suite.task.name, kind)}"
            )


def most_seconds(suite: Suite) -> float:
    return sum(SLOWEST_STEP * job.epochs * steps_per_epoch(job, suite.facts) for job in suite.jobs())


def instead_of(task: str, kind: str) -> str:
    """What would take less."""
    if kind != "cpu":
        return "fewer --seeds or --methods take less, more machines too (docs/cluster.md)"
    small = f"--datasets {task}-cpu (paper: --scale cpu) is a small version; " if f"{task}-cpu" in task_names() else ""
    found = default_device()
    if found == "cpu":
        return f"{small}no GPU was found here; where there is one, --device auto takes it"
    return f"{small}--device {found} is here, too"
