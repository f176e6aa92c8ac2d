"""Measure how fast steps are, what bounds them, and what that means for a run of the paper's tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.profiler import ProfilerActivity, profile

from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.data.devices import free_bytes, free_memory, has_streams, out_of_memory, start_memory, used_memory
from benchmark.doctor.examination import Patient, Result
from benchmark.doctor.launches import Launches
from benchmark.doctor.made_up import job_of, own_phase, trainer_for
from benchmark.doctor.training import LARGE, large_trainer
from benchmark.forecast.outlook import look_ahead
from benchmark.forecast.step_times import StepTimes, endless_steps, seconds_for, step_time
from benchmark.jobs.suite import Suite
from benchmark.store.store import Store
from benchmark.train.determinism import set_precision
from benchmark.train.trainer import State, Trainer

PROFILED_STEPS = 5
MOST_JOBS = 8
"""Most jobs that share a GPU: more get into each other's way."""
WORTH_IT = 1.2
"""How much faster another precision must be to be suggested."""


def pace(patient: Patient) -> Result:
    """Tell time and operators of a step, how long the device idles in it, and settings that this suggests."""
    task = load_task(LARGE)
    labels = (task.baseline, task.reference)
    facts: dict[str, Any] = {label: measured(patient, label) for label in labels}
    plain = facts[task.baseline]
    for name, overrides in faster_ways(patient).items():
        trainer = large_trainer(patient, task.baseline, *overrides)
        plain[name] = 1e-3 * plain["milliseconds"] / time_of(trainer, own_phase(trainer), task)
    facts["suggested"] = suggestion(patient, plain)
    steps = "; ".join(step_text(label, facts[label]) for label in labels)
    gains = ", ".join(f"{name} ×{plain[name]:.1f}" for name in faster_ways(patient))
    text = f"a step of {LARGE} takes {steps}" + (f"; {gains} as fast" if gains else "")
    return Result(text + (f"; suggested: {facts['suggested']}" if facts["suggested"] else ""), facts)


def faster_ways(patient: Patient) -> dict[str, list[str]]:
    """Return settings to try beside single precision."""
    if not has_streams(patient.device):
        return {}
    tf32 = {"tf32": ["tf32=true"]} if patient.device.type == "cuda" else {}
    return {**tf32, "bf16": ["amp=bf16"], "fp16": ["amp=fp16"]}


def time_of(trainer: Trainer, state: State, usual: TaskConfig) -> float:
    """Return the seconds of a step with the batch that a task usually has."""
    task = trainer.job.task
    set_precision(trainer.device, task.tf32)
    try:
        return step_time(trainer, state) * usual.batch_size / task.batch_size
    finally:
        set_precision(trainer.device, tf32=False)
        free_memory(trainer.device)


def measured(patient: Patient, label: str) -> dict[str, Any]:
    start_memory(patient.device)
    trainer = large_trainer(patient, label)
    state = own_phase(trainer)
    seconds = time_of(trainer, state, load_task(LARGE))
    found = {"milliseconds": 1e3 * seconds, "bytes": used_memory(patient.device)}
    if not has_streams(patient.device):
        return found
    steps = endless_steps(trainer, state)
    next(steps)
    with Launches(patient.device.type) as launches:
        next(steps)
    found["operators"] = launches.counts.total()
    busy = busy_seconds(trainer, steps) if patient.device.type == "cuda" else 0.0
    return found | ({"idle": max(0.0, 1 - busy / seconds)} if busy else {})


def busy_seconds(trainer: Trainer, steps: Any) -> float:
    """Return the seconds of a step in which kernels run, as the profiler sees it; 0 where it is not allowed to look."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        seconds_for(PROFILED_STEPS, steps, trainer.device)
    # Operators tell the time of their kernels once more, and so do named regions.
    kernels = [event for event in profiler.key_averages() if event.device_type.name == "CUDA"]
    microseconds = sum(each.self_device_time_total for each in kernels if not each.is_user_annotation)
    return float(1e-6 * microseconds / PROFILED_STEPS)


def step_text(label: str, facts: dict[str, Any]) -> str:
    idle = f", device idle {facts['idle']:.0%}" if "idle" in facts else ""
    operators = f" ({facts['operators']} operators{idle})" if "operators" in facts else ""
    return f"{facts['milliseconds']:.1f} ms with {label}{operators}"


def suggestion(patient: Patient, plain: dict[str, Any]) -> str:
    """Suggest jobs that fill what one leaves idle, as far as memory goes, and half precision where it pays."""
    if not has_streams(patient.device):
        return ""
    room = int(free_bytes(patient.device) / max(2 * plain["bytes"], 1))
    jobs = max(1, min(round(1 / max(1 - plain.get("idle", 0.0), 0.1)), room, MOST_JOBS))
    half = max(("bf16", "fp16"), key=lambda name: plain[name])
    words = [f"--jobs-per-device {jobs}"] if jobs > 1 else []
    words += [f"--amp {half} (other bits, so another job)"] if plain[half] > WORTH_IT else []
    return " and ".join(words) or "the defaults"


def hours(patient: Patient, suites: Sequence[Suite], store: Store) -> Result:
    """Estimate the device-hours of all published tables from a few steps of each of their networks."""
    known: dict[Any, tuple[float, float] | None] = {}
    found: dict[str, float | None] = {}
    for suite in suites:
        task, kind = suite.task, (suite.task.network, suite.facts.shape, suite.task.batch_size, suite.task.augment)
        if kind not in known:
            known[kind] = pair_of_times(patient, task)
        times, found[task.name] = known[kind], None
        if times is not None:
            reference = job_of(task, task.reference, patient).method
            step_times = StepTimes({("", "own"): [times[0]], (reference, "own"): [times[1]]})
            outlook = replace(look_ahead(suite, store, lambda jobs: StepTimes(), share=True), step_times=step_times)
            found[task.name] = outlook.hours(outlook.to_run)
    shown = {name: "does not fit" if needed is None else f"{needed:,.0f}" for name, needed in found.items()}
    text, total = ", ".join(map(" ".join, shown.items())), sum(needed or 0.0 for needed in found.values())
    return Result(f"about {total:,.0f} device-hours for all published tables ({text}), an estimate", found)


def pair_of_times(patient: Patient, task: TaskConfig) -> tuple[float, float] | None:
    """Return the seconds of a step of the plain method and of the reference; None where memory does not suffice."""
    try:
        trainers = (trainer_for(task, label, patient) for label in (task.baseline, task.reference))
        plain, other = (time_of(trainer, own_phase(trainer), task) for trainer in trainers)
    except Exception as error:
        if not out_of_memory(error):
            raise
        return None
    return plain, other
