"""`check`: test a method against the contract, rule by rule. A file of your own is executed."""

import argparse
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.commands.options import MakeRegistry, add_set

HELP = "test a method of your own against the contract, rule by rule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="FILE.py|METHOD", help="your file, which is executed, or a built-in method")
    add_set(parser, "FIELD", "queue_size=8")


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.check.candidates import candidates_of, findings

    path = Path(arguments.method)
    is_file = path.suffix == ".py"
    methods = make_registry([path] if is_file else [])
    settings = dict(setting(text) for text in arguments.set)
    broken = 0
    for candidate in candidates_of(path.stem if is_file else arguments.method, methods, settings):
        print(f"{candidate.label}: {candidate.method.title}")
        for finding in findings(candidate, methods):
            remark = f": {finding.remark}" if finding.remark else ""
            print(f"  {'holds' if finding.holds else 'FAILS'}  {finding.check}{remark}", flush=True)
            broken += not finding.holds
    failed = f"{counted(broken, 'check')} failed; benchmark/interface.py is the contract"
    print(failed if broken else "the contract holds")
    return 1 if broken else 0


def setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set '{text}': expected FIELD=VALUE, e.g. --set queue_size=8")
    return name.strip(), value.strip()
