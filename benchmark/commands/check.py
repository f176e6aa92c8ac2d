"""`check`: put a method through the contract, line by line. A user's file is executed."""

import argparse
from pathlib import Path
from typing import Any

from benchmark.commands.run import MakeRegistry
from benchmark.errors import UserError
from benchmark.names import match_labels

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
    from benchmark.jobs import label_owners

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
        for finding in examine(candidate):
            remark = f": {finding.remark}" if finding.remark else ""
            print(f"  {'holds' if finding.holds else 'FAILS'}  {finding.check}{remark}", flush=True)
            broken += not finding.holds
    print("the contract holds" if not broken else f"{broken} check(s) failed; benchmark/interface.py is the contract")
    return 1 if broken else 0


def setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set '{text}': expected FIELD=VALUE, e.g. --set queue_size=8")
    return name.strip(), value.strip()
