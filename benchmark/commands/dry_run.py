"""The options of --dry-run, for every command that has it."""

import argparse
import re
from collections.abc import Sequence

from benchmark.base.errors import UserError
from benchmark.base.limits import Within, read_number, shown
from benchmark.base.names import canonical, match_name
from benchmark.commands.options import Arguments, refusing
from benchmark.launch.placement import Device

MOST_DEVICES = 1000
NEEDS = {"dry_run": ("json", "probe", "cluster", "step_seconds", "speed", "price"), "cluster": ("speed", "price")}
"""Options without which others mean nothing."""


def add_plan(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("plan first")
    group.add_argument(
        "--dry-run", action="store_true", help="show the plan: jobs with their state, epochs, device-hours, disk"
    )
    group.add_argument(
        "--probe",
        action="store_true",
        help="with --dry-run: measure a few steps of each method file now, instead of reading earlier records; Ctrl-C "
        "ends it early and keeps what was measured",
    )
    group.add_argument("--json", action="store_true", help="with --dry-run: print the plan as JSON")
    group.add_argument(
        "--cluster",
        type=device_counts,
        metavar="DEVICES",
        help='with --dry-run: simulate the run on these devices, e.g. "8xA100" or "8xA100,4xL4", and draw it',
    )
    step = "with --dry-run: seconds per step, used instead of measured ones, e.g. cifar100=0.031 imagenet=0.42"
    speed = "with --cluster: speed of a device; 1 (default) keeps the step times, L4=0.4 makes them 2.5 times as long"
    price = "with --cluster: price of an hour on a device, e.g. A100=1.80 L4=0.70"
    add_pairs(group, "--step-seconds", "TASK=SECONDS", Within(1e-9, 86_400, "a step takes less than a day"), step)
    fastest = Within(1e-6, 10**6, "no device is so much faster than another")
    add_pairs(group, "--speed", "DEVICE=FACTOR", fastest, speed)
    add_pairs(group, "--price", "DEVICE=PRICE", Within(1e-6, 10**6, "no hour costs more"), price)


def add_pairs(parser: Arguments, flag: str, metavar: str, limit: Within, text: str) -> None:
    """Add an option with pairs such as `L4=0.4`: each a name, and a number within the limit."""

    @refusing
    def read(pair: str) -> tuple[str, float]:
        name, _, number = pair.rpartition("=")
        if not name.strip():
            raise ValueError(f"expected NAME=NUMBER, got {shown(pair)}")
        return name, read_number(number, float, limit)

    parser.add_argument(flag, nargs="+", type=read, default=[], metavar=metavar, help=text)


@refusing
def device_counts(text: str) -> list[tuple[int, str]]:
    """Return how many devices of which name are meant by a text such as `8xA100,4xL4`."""
    parts = [re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*[x×]\s*(\w[\w.+ -]*?)\s*", part) for part in text.split(",")]
    found = [(int(part[1]), part[2]) for part in parts if part]
    if len(found) < len(parts) or sum(count for count, _ in found) > MOST_DEVICES:
        expected = f"up to {MOST_DEVICES} devices such as 8xA100 or 8xA100,4xL4"
        raise ValueError(f"expected {expected}, got {shown(text)}")
    return found


def check_plan(arguments: argparse.Namespace) -> None:
    """Refuse options of a plan that is not asked for, and devices that cannot be simulated."""
    for owner, names in NEEDS.items():
        for name in names:
            if getattr(arguments, name) and not getattr(arguments, owner):
                option, needed = (f"--{each.replace('_', '-')}" for each in (name, owner))
                raise UserError(f"{option} needs {needed}; add {needed}, or leave out {option}")
    if arguments.cluster:
        simulated_devices(arguments)
        if arguments.gpus_per_job > 1:
            raise UserError("--cluster simulates jobs that take one device or a part of it; leave out --gpus-per-job")


def simulated_devices(arguments: argparse.Namespace) -> list[Device]:
    """Return the devices of --cluster, one by one. Refuse prices for only some of them."""
    names = list(dict.fromkeys(name for _, name in arguments.cluster))
    speeds, prices = (by_name(getattr(arguments, option), names, option) for option in ("speed", "price"))
    lacking = [name for name in names if prices and name not in prices]
    if lacking:
        raise UserError(
            f"--price has no price for {lacking[0]}; add {lacking[0]}=PRICE to --price, or leave out --price"
        )
    return [
        Device(name, speeds.get(name, 1.0), prices.get(name)) for count, name in arguments.cluster for _ in range(count)
    ]


def by_name(pairs: Sequence[tuple[str, float]], known: Sequence[str], option: str) -> dict[str, float]:
    return {match_name(name, known, f"device of --{option}:"): value for name, value in pairs}


def needs_data(task: str, arguments: argparse.Namespace) -> bool:
    """Tell whether a task's images must be there. A plan does without them, unless it measures steps on them."""
    given = {canonical(name) for name, _ in arguments.step_seconds}
    return not arguments.dry_run or (arguments.probe and canonical(task) not in given)
