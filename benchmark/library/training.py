"""Plan or train what some options ask for: what a grid, published tables and a search have in common."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from benchmark.base.children import safe_path
from benchmark.base.errors import JobsFailed, UserError
from benchmark.base.files import say
from benchmark.base.names import canonical, match_name
from benchmark.base.units import counted
from benchmark.config.ingredient_names import find_ingredients
from benchmark.forecast import dry_run
from benchmark.forecast.long_plans import long_plan_warnings
from benchmark.jobs.job import Methods
from benchmark.jobs.suite import Suite, in_line
from benchmark.launch.grid import Grid, GridOptions, check_writable, devices_for
from benchmark.launch.placement import Device
from benchmark.launch.suites import SuiteMaker
from benchmark.library.options import Pairs, PlanningOptions, TrainingOptions
from benchmark.library.settings import folders_of
from benchmark.library.tables import Tables
from benchmark.store.mirror import Mirror, mirrored
from benchmark.store.store import Store

T = TypeVar("T", bound=TrainingOptions)


@dataclass(frozen=True)
class Trained(Tables):
    """The tables of what is trained, what to say of them, and a line for each job that has no result."""

    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What is to be trained, and what is written of it."""

    suites: Sequence[Suite]
    methods: Methods
    noting: AbstractContextManager[Any]
    """Writes down what is asked for, before and perhaps after the training."""
    finish: Callable[[], Tables]
    """Writes the results. Neither is used where only a few steps are tried."""


Ask = Callable[[T, Store, PlanningOptions | None], Request]
"""Makes the request of some options. With plan options it need not have the images."""


def suite_maker(
    options: TrainingOptions, methods: Methods, seeds: Sequence[int], ahead: PlanningOptions | None
) -> SuiteMaker:
    """Return what makes the suites of some options."""
    speed = {name: getattr(options, name) for name in ("channels_last", "amp", "compile")}
    given = {canonical(name) for name, _ in ahead.step_seconds} if ahead else set()
    return SuiteMaker(
        methods,
        folders_of(options),
        "cpu" if options.ray else options.device,  # a cluster's machines are their own
        (*ingredient_overrides(getattr(options, "ingredients", ())), *getattr(options, "set", ())),
        tuple(f"{name}={value}" for name, value in speed.items() if value is not None),
        tuple(seeds),
        options.max_steps,
        lambda task: ahead is None or (ahead.probe and canonical(task.name) not in given),
        options.quiet,
    )


def ingredient_overrides(names: Sequence[str]) -> list[str]:
    """Return the settings that some ingredients stand for."""
    return [each.override for each in find_ingredients(names)]


def train(options: T, ask: Ask[T]) -> Trained:
    """Train what is missing of a request, and write its results. Raise JobsFailed where some jobs have none."""
    with safe_path(), mirrored(options.results) as here:
        store = Store(here.folder)
        request = ask(options, store, None)
        grid = make_grid(request, store, options, here.mirror)
        with nullcontext() if options.max_steps else request.noting:
            grid.prepare()
            if grid.devices and not (options.max_steps or options.quiet):
                for line in long_plan_warnings(request.suites, store, grid.devices, share=options.share_warmups):
                    say(line)
            failures = grid.run()
        tried = f"tried {counted(options.max_steps, 'step')} of each job; nothing is tabulated"
        made = Tables((), tried) if options.max_steps else request.finish()
        here.outcome = trained = Trained(made.shown, made.remark, tuple(failures))
    if failures:
        raise JobsFailed(failures, trained)
    return trained


def make_grid(request: Request, store: Store, options: TrainingOptions, mirror: Mirror | None) -> Grid:
    """Return the jobs of a request with the devices for them. Refuse what cannot be done or written here."""
    names = [field.name for field in fields(GridOptions) if field.name != "mirror"]
    how = GridOptions(**{name: getattr(options, name) for name in names}, mirror=mirror)
    devices = devices_for(request.suites, how, request.methods)
    check_writable(store, how)
    jobs = in_line(job for suite in request.suites for job in suite.jobs())
    return Grid(jobs, store, folders_of(options), request.methods, devices, how)


def plan(options: T, ask: Ask[T], ahead: PlanningOptions) -> dry_run.Plan:
    """Return the plan of a request: jobs with their state, epochs, device-hours and disk. Nothing is trained."""
    devices = simulated_devices(ahead)
    if devices and options.gpus_per_job > 1:
        raise UserError("--cluster simulates jobs that take one device or a part of it; leave out --gpus-per-job")
    how = dry_run.PlanOptions(
        options.device,
        ahead.probe,
        dict(ahead.step_seconds),
        devices,
        options.jobs_per_device,
        options.share_warmups,
    )
    with safe_path(), mirrored(options.results) as here:
        store = Store(here.folder)
        request = ask(options, store, ahead)
        return dry_run.make_plan(request.suites, store, how, request.methods, folders_of(options))


def simulated_devices(ahead: PlanningOptions) -> list[Device]:
    """Return the devices of a simulated cluster, one by one. Refuse prices for only some of them."""
    counts = ahead.cluster or ()
    names = list(dict.fromkeys(name for _, name in counts))
    speeds, prices = by_name(ahead.speed, names, "speed"), by_name(ahead.price, names, "price")
    lacking = [name for name in names if prices and name not in prices]
    if lacking:
        raise UserError(
            f"--price has no price for {lacking[0]}; add {lacking[0]}=PRICE to --price, or leave out --price"
        )
    return [Device(name, speeds.get(name, 1.0), prices.get(name)) for count, name in counts for _ in range(count)]


def by_name(pairs: Pairs, known: Sequence[str], option: str) -> dict[str, float]:
    return {match_name(name, known, f"device of --{option}:"): value for name, value in pairs}
