"""`doctor`: show in two minutes, without any data, that a device computes what it should, and how fast."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from benchmark.base.program import program
from benchmark.base.units import counted
from benchmark.commands.options import MakeRegistry, add_device

if TYPE_CHECKING:
    from benchmark.doctor.examination import Diagnosis

HELP = "is this GPU (or CPU) right and ready? two minutes, no data needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser, "what to examine")
    parser.add_argument("--json", action="store_true", help="print JSON, to attach to a report of a fault")


def run(arguments: argparse.Namespace, make_registry: MakeRegistry) -> int:
    from benchmark.doctor.checks import admit, examine_all, made_with

    patient = admit(arguments.device, make_registry([]))
    diagnoses: list[Diagnosis] = []
    for diagnosis in examine_all(patient):
        print(diagnosis.line(), file=sys.stderr if arguments.json else sys.stdout, flush=True)
        diagnoses.append(diagnosis)
    troubles = [diagnosis for diagnosis in diagnoses if diagnosis.state == "trouble"]
    if arguments.json:
        checks = [diagnosis.plain() for diagnosis in diagnoses]
        described = {**made_with(patient, begun=diagnoses[0].state == "fine"), "checks": checks}
        print(json.dumps(described, indent=1, default=str))
    elif troubles:
        report = f"please report it with the output of `{program()} doctor --json`"
        print(f"{counted(len(troubles), 'check')} in trouble; {report}")
    else:
        print(f"nothing is wrong ({sum(diagnosis.seconds for diagnosis in diagnoses):.0f} s)")
    return 1 if troubles else 0
