"""`check`: put a method through the contract, line by line. A user's file is executed."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.commands.run import MakeRegistry
from benchmark.errors import UserError
from benchmark.names import match_labels
from benchmark.tasks import load_task
from benchmark.units import counted

if TYPE_CHECKING:
    from benchmark.contract import Finding
    from benchmark.jobs import Methods

EPOCHS = 3600
"""Long enough for any warm-up, and divisible by most numbers of cycles."""
HELP = "examine a method of your own: what holds of the contract and what does not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="FILE.py|METHOD", help="your file, which is executed, or a built-in method")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a setting of the method for the examination, e.g. queue_size=8",
    )


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.candidate import Candidate
    from benchmark.contract import examine
    from benchmark.planner import label_owners

    path = Path(arguments.method)
    is_file = path.suffix == ".py"
    methods = make_registry([path] if is_file else [])
    owners = label_owners(methods)
    labels = match_labels([path.stem if is_file else arguments.method], owners)
    settings = dict(setting(text) for text in arguments.set)
    candidates = [Candidate(methods.get(owners[label]), label, settings) for label in labels]
    for candidate in candidates:
        candidate.config()  # a wrong setting is bad input, not a broken contract
    broken = 0
    for candidate in candidates:
        print(f"{candidate.label}: {candidate.method.title}")
        for finding in (planned(candidate.label, methods), *examine(candidate)):
            remark = f": {finding.remark}" if finding.remark else ""
            print(f"  {'holds' if finding.holds else 'FAILS'}  {finding.check}{remark}", flush=True)
            broken += not finding.holds
    print(
        "the contract holds"
        if not broken
        else f"{counted(broken, 'check')} failed; benchmark/interface.py is the contract"
    )
    return 1 if broken else 0


def planned(label: str, methods: "Methods") -> "Finding":
    """What it declares to need of other methods is there."""
    from benchmark.contract import Finding
    from benchmark.planner import plan

    task = replace(load_task("digits"), epochs=EPOCHS)
    try:
        plan(task, [label], [0], methods, "")
    except UserError as error:
        return Finding("can be planned", False, str(error))
    return Finding("can be planned", True, "")


def setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set '{text}': expected FIELD=VALUE, e.g. --set queue_size=8")
    return name.strip(), value.strip()
