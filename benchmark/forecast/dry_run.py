"""Work out what a command would do, and on request how a cluster would do it, without training anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from benchmark.base.errors import UserError
from benchmark.base.names import match_name
from benchmark.data.cache import Folders
from benchmark.data.devices import device_kind, device_name
from benchmark.forecast.describe import describe_plan, describe_schedule, plan_text
from benchmark.forecast.outlook import Outlook, look_ahead, simulate_all
from benchmark.forecast.step_times import StepTimes, known_step_times, measure_step_times
from benchmark.jobs.job import Job, Methods
from benchmark.jobs.suite import Suite
from benchmark.launch.placement import Device
from benchmark.store.store import Store
from benchmark.store.version_control import is_under_version_control

MOST_SCHEDULED = 5000


@dataclass(frozen=True)
class PlanOptions:
    """What --dry-run is asked for."""

    device: str = "auto"
    probe: bool = False
    """Whether to measure a few steps now, instead of reading earlier records."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """By task, what a step takes where it is not to be measured."""
    cluster: Sequence[Device] = ()
    jobs_per_device: int = 1
    share_warmups: bool = True


@dataclass
class Plan:
    """Plain data that describes a plan, and whether a person ended the measuring early."""

    described: dict[str, Any]
    cut_short: bool

    def text(self) -> str:
        return plan_text(self.described)


@dataclass
class Clock:
    """Finds what steps take: as given, as measured now, or as earlier records tell."""

    options: PlanOptions
    store: Store
    folders: Folders
    methods: Methods
    cut_short: bool = False

    def step_times(self, jobs: Sequence[Job]) -> StepTimes:
        seconds = self.options.step_seconds.get(jobs[0].task.name) if jobs else None
        if seconds is not None:
            return StepTimes({("", "own"): [seconds]})
        if self.options.probe and not self.cut_short and not any(job.evaluates for job in jobs):
            device = torch.device(device_name(self.options.device))
            measured = measure_step_times(jobs, self.folders, self.methods, device)
            self.cut_short = measured.cut_short
            return measured
        return known_step_times(jobs, self.store, device_kind(self.options.device))


def make_plan(suites: Sequence[Suite], store: Store, options: PlanOptions, methods: Methods, folders: Folders) -> Plan:
    """Return the plan of some suites: jobs with their state, epochs, device-hours and disk."""
    names = [suite.task.name for suite in suites]
    given = {match_name(name, names, "task of --step-seconds:"): value for name, value in options.step_seconds.items()}
    if options.cluster and not is_under_version_control(store.root):
        store.check_writable()
    clock = Clock(replace(options, step_seconds=given), store, folders, methods)
    outlooks = [look_ahead(suite, store, clock.step_times, share=options.share_warmups) for suite in suites]
    described = describe_plan(outlooks, store)
    if options.cluster:
        described["schedule"] = simulated(outlooks, store, options)
    return Plan(described, clock.cut_short)


def simulated(outlooks: Sequence[Outlook], store: Store, options: PlanOptions) -> dict[str, Any]:
    """Return the run on the devices of --cluster as plain data; draw it where there is something to draw."""
    count = sum(len(outlook.to_run) for outlook in outlooks)
    if count > MOST_SCHEDULED:
        raise UserError(
            f"--cluster: expected at most {MOST_SCHEDULED:,} jobs to simulate and draw, got {count:,}; ask for fewer "
            "seeds, methods or tasks"
        )
    forecast = simulate_all(outlooks, options.cluster, options.jobs_per_device)
    described = describe_schedule(forecast)
    if forecast.schedule.placed and not is_under_version_control(store.root):
        from benchmark.forecast.gantt import save_chart  # matplotlib: only now, so that other plans need not wait

        described["figures"] = [str(path) for path in save_chart(forecast, store.root / "figures")]
    return described
