"""`doctor`: show in two minutes, without any data, that a device computes what it should, and how fast."""

import argparse
import json
import sys

from benchmark.base.program import program
from benchmark.base.units import counted
from benchmark.commands.options import add_device

HELP = "is this GPU (or CPU) right and ready? two minutes, no data needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser, "what to examine")
    parser.add_argument("--json", action="store_true", help="print JSON, to attach to a report of a fault")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.doctor import examine_device

    examination = examine_device(arguments.device)
    for diagnosis in examination:
        print(diagnosis.line(), file=sys.stderr if arguments.json else sys.stdout, flush=True)
    troubles = examination.troubles()
    if arguments.json:
        print(json.dumps(examination.described(), indent=1, default=str))
    elif troubles:
        report = f"please report it with the output of `{program()} doctor --json`"
        print(f"{counted(len(troubles), 'check')} in trouble; {report}")
    else:
        print(f"nothing is wrong ({sum(diagnosis.seconds for diagnosis in examination.diagnoses):.0f} s)")
    return 1 if troubles else 0
