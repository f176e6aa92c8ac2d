"""`--dry-run`: the options of every command that has it, and what it prints, up to a simulated cluster."""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.cache import Folders
from benchmark.commands.options import refusing
from benchmark.commands.reading import is_under_version_control
from benchmark.errors import UserError
from benchmark.files import say
from benchmark.interrupts import EXIT_INTERRUPTED
from benchmark.limits import Within, read_number, shown
from benchmark.names import canonical, match_name
from benchmark.schedule import Device
from benchmark.store import Store

if TYPE_CHECKING:
    from benchmark.config import TaskConfig
    from benchmark.forecast import Outlook
    from benchmark.jobs import Job, Methods, Suite

MOST_DEVICES, MOST_SCHEDULED = 1000, 5000
NEEDS = {"dry_run": ("json", "probe", "cluster", "step_seconds", "speed", "price"), "cluster": ("speed", "price")}
"""Options without which others mean nothing."""


def add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show the plan: jobs with their state, epochs, device-hours, disk"
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="with --dry-run: measure a few steps of each method file now, instead of reading earlier records; Ctrl-C "
        "ends it early and keeps what was measured",
    )
    parser.add_argument("--json", action="store_true", help="with --dry-run: print it as JSON")
    parser.add_argument(
        "--cluster",
        type=device_counts,
        metavar="DEVICES",
        help='with --dry-run: simulate the run on these devices, e.g. "8xA100" or "8xA100,4xL4", and draw it',
    )
    pair: dict[str, Any] = {"nargs": "+", "default": []}
    parser.add_argument(
        "--step-seconds",
        metavar="TASK=SECONDS",
        help="with --dry-run: what a step takes, where it is not to be measured, e.g. cifar100=0.031 imagenet=0.42",
        type=named_number(Within(1e-9, 86_400, "a step takes less than a day")),
        **pair,
    )
    parser.add_argument(
        "--speed",
        metavar="DEVICE=FACTOR",
        help="with --cluster: how fast a device is, where the step times hold for 1 (default), e.g. L4=0.4",
        type=named_number(Within(1e-6, 10**6, "no device is so much faster than another")),
        **pair,
    )
    parser.add_argument(
        "--price",
        metavar="DEVICE=PRICE",
        help="with --cluster: of an hour of a device, e.g. A100=1.80 L4=0.70",
        type=named_number(Within(1e-6, 10**6, "no hour costs more")),
        **pair,
    )


def device_counts(text: str) -> list[tuple[int, str]]:
    """`8xA100,4xL4` → how many of which."""
    parts = [re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*[x×]\s*(\w[\w.+ -]*?)\s*", part) for part in text.split(",")]
    found = [(int(part[1]), part[2]) for part in parts if part]
    if len(found) < len(parts) or sum(count for count, _ in found) > MOST_DEVICES:
        expected = f"up to {MOST_DEVICES} devices such as 8xA100 or 8xA100,4xL4"
        raise argparse.ArgumentTypeError(f"expected {expected}, got {shown(text)}")
    return found


def named_number(limit: Within) -> Callable[[str], tuple[str, float]]:
    def read(text: str) -> tuple[str, float]:
        name, _, number = text.rpartition("=")
        if not name.strip():
            raise ValueError(f"expected NAME=NUMBER, got {shown(text)}")
        return name, read_number(number, float, limit)

    return refusing(read)


def check_plan(arguments: argparse.Namespace) -> None:
    for owner, names in NEEDS.items():
        for name in names:
            if getattr(arguments, name) and not getattr(arguments, owner):
                option, needed = (f"--{each.replace('_', '-')}" for each in (name, owner))
                raise UserError(f"{option} belongs to {needed}; add {needed}, or leave it out")
    if arguments.cluster:
        devices_of(arguments)
        if arguments.gpus_per_job > 1:
            raise UserError("--cluster simulates jobs that take one device or a part of it; leave out --gpus-per-job")


def devices_of(arguments: argparse.Namespace) -> list[Device]:
    """The devices of --cluster, one by one; a price for some of them would be a price for none."""
    names = list(dict.fromkeys(name for _, name in arguments.cluster))
    speeds, prices = (by_name(getattr(arguments, option), names, option) for option in ("speed", "price"))
    lacking = [name for name in names if prices and name not in prices]
    if lacking:
        raise UserError(
            f"--price says nothing of {lacking[0]}; add --price {lacking[0]}=PRICE, or leave all prices out"
        )
    return [
        Device(name, speeds.get(name, 1.0), prices.get(name)) for count, name in arguments.cluster for _ in range(count)
    ]


def by_name(pairs: Sequence[tuple[str, float]], known: Sequence[str], option: str) -> dict[str, float]:
    kind = "task" if option == "step-seconds" else "device"
    return {match_name(name, known, f"{kind} of --{option}:"): value for name, value in pairs}


def needs_data(task: "TaskConfig", arguments: argparse.Namespace) -> bool:
    """A plan does without the images, unless it measures steps on them."""
    given = {canonical(name) for name, _ in arguments.step_seconds}
    return not arguments.dry_run or (arguments.probe and canonical(task.name) not in given)


def show_plan(
    suites: "list[Suite]", store: Store, arguments: argparse.Namespace, methods: "Methods", folders: Folders
) -> int:
    import torch

    from benchmark.cost import Paces, known_paces, measure_paces
    from benchmark.devices import device_kind, device_name
    from benchmark.forecast import look_ahead
    from benchmark.planning import describe_plan, plan_text

    kind, cut_short = device_kind(arguments.device), False
    given = by_name(arguments.step_seconds, [suite.task.name for suite in suites], "step-seconds")
    if arguments.cluster and not is_under_version_control(store.root):
        store.check_writable()

    def pace(jobs: "Sequence[Job]") -> Paces:
        seconds = given.get(jobs[0].task.name) if jobs else None
        if seconds is not None:
            return Paces({("", "own"): [seconds]})
        nonlocal cut_short
        if arguments.probe and not cut_short:
            device = torch.device(device_name(arguments.device))
            found = measure_paces(jobs, folders, methods, device, say)
            cut_short = found.cut_short
            return found
        return known_paces(jobs, store, kind)

    outlooks = [look_ahead(suite, store, pace, share=not arguments.no_shared_warmup) for suite in suites]
    described = describe_plan(outlooks, store)
    if arguments.cluster:
        described["schedule"] = simulated(outlooks, store, arguments)
    print(json.dumps(described, indent=1) if arguments.json else plan_text(described))
    return EXIT_INTERRUPTED if cut_short else 0


def simulated(outlooks: "Sequence[Outlook]", store: Store, arguments: argparse.Namespace) -> dict[str, Any]:
    """The run on the devices of --cluster in figures, and its picture where there is something to draw."""
    from benchmark.forecast import simulate_all
    from benchmark.planning import describe_schedule

    count = sum(len(outlook.to_run) for outlook in outlooks)
    if count > MOST_SCHEDULED:
        raise UserError(
            f"--cluster: expected at most {MOST_SCHEDULED:,} jobs to simulate and draw, got {count:,}; ask for fewer "
            "seeds, methods or tasks"
        )
    forecast = simulate_all(outlooks, devices_of(arguments), arguments.jobs_per_device)
    described = describe_schedule(forecast)
    if forecast.schedule.placed and not is_under_version_control(store.root):
        from benchmark.plots.gantt import draw  # only now, so that other plans need not wait for matplotlib
        from benchmark.plots.style import house_style, save

        with house_style():
            described["figures"] = [str(path) for path in save(draw(forecast), store.root / "figures", "schedule")]
    return described
