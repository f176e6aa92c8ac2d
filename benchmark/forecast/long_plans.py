"""Warn before a plan starts that takes days on this machine, and say what to use instead."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from benchmark.base.units import DAY, counted, two_digits
from benchmark.config.load import task_names
from benchmark.data.devices import default_device
from benchmark.forecast.outlook import look_ahead
from benchmark.forecast.step_times import StepTimes, known_step_times, rough_step_times, steps_per_epoch
from benchmark.jobs.job import Job
from benchmark.jobs.suite import Suite
from benchmark.store.store import Store

SLOWEST_STEP = 20.0
"""Seconds. A plan that takes less than a day even with steps this slow is not examined further."""


def long_plan_warnings(suites: Sequence[Suite], store: Store, devices: Sequence[str], *, share: bool) -> Iterator[str]:
    """Yield a line for each task that keeps these devices busy for more than a day."""
    kind = torch.device(devices[0]).type
    for suite in suites:
        if most_seconds(suite) < DAY * len(devices):
            continue
        outlook = look_ahead(suite, store, partial(find_step_times, suite, store, kind), share=share)
        days = (outlook.hours(outlook.to_run) or 0.0) * 3600 / DAY / len(devices)
        if days > 1:
            at_a_time = f"{len(devices)} at a time" if len(devices) > 1 else "one after the other"
            jobs = counted(len(outlook.missing), "job")
            yield (
                f"{suite.task.name}: {jobs}, {at_a_time}, take about {two_digits(days)} days on "
                f"this machine's {kind.upper()}; {faster_choices(suite.task.name, kind)}"
            )


def find_step_times(suite: Suite, store: Store, kind: str, jobs: Sequence[Job]) -> StepTimes:
    """Return the step times in records. Without any, estimate them on the CPU; a GPU is not touched yet."""
    known = known_step_times(jobs, store, kind)
    if kind == "cpu" and not known.seconds:
        return rough_step_times(suite.task, suite.facts, torch.device("cpu"))
    return known


def most_seconds(suite: Suite) -> float:
    """Return how long all jobs of a suite take with very slow steps."""
    return sum(SLOWEST_STEP * job.epochs * steps_per_epoch(job, suite.facts) for job in suite.jobs())


def faster_choices(task: str, kind: str) -> str:
    """Return a text that says what would take less time."""
    if kind != "cpu":
        return "use fewer --seeds or --methods, or more machines (docs/cluster.md)"
    small = f"--datasets {task}-cpu (paper: --scale cpu) is a small version; " if f"{task}-cpu" in task_names() else ""
    device = default_device()
    if device == "cpu":
        return f"{small}no GPU was found here; on a machine with a GPU, --device auto uses it"
    return f"{small}--device {device} is here, too"
