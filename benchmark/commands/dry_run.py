"""The options of --dry-run, for every command that has it."""

import argparse

from benchmark.base.errors import UserError
from benchmark.base.limits import Within, read_number, shown
from benchmark.commands.options import Arguments, refusing
from benchmark.library.options import device_counts

NEEDS = {"dry_run": ("json", "probe", "cluster", "step_seconds", "speed", "price"), "cluster": ("speed", "price")}
"""Options without which others mean nothing."""


PLAN_ONLY: dict[str, object] = {"probe": False, "cluster": None, "step_seconds": [], "speed": [], "price": []}
"""What the options of the time of a training are where there are none."""


def add_dry_run(group: Arguments) -> None:
    group.add_argument(
        "--dry-run", action="store_true", help="show the plan: jobs with their state, epochs, device-hours, disk"
    )
    group.add_argument("--json", action="store_true", help="with --dry-run: print the plan as JSON")


def add_plan(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("plan first")
    add_dry_run(group)
    group.add_argument(
        "--probe",
        action="store_true",
        help="with --dry-run: measure a few steps of each method file now, instead of reading earlier records; Ctrl-C "
        "ends it early and keeps what was measured",
    )
    group.add_argument(
        "--cluster",
        type=refusing(device_counts),
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


def check_plan(arguments: argparse.Namespace) -> None:
    """Refuse options of a plan that is not asked for."""
    for owner, names in NEEDS.items():
        for name in names:
            if getattr(arguments, name) and not getattr(arguments, owner):
                option, needed = (f"--{each.replace('_', '-')}" for each in (name, owner))
                raise UserError(f"{option} needs {needed}; add {needed}, or leave out {option}")
