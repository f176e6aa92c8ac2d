"""`check`: test a method, or what a file of your own defines, against the contract, rule by rule."""

import argparse

from benchmark.base.units import counted
from benchmark.commands.options import add_data_folder, add_set, make_options
from benchmark.library.options import CheckOptions

HELP = "test a method, score, network or data source of your own, rule by rule"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="FILE.py|METHOD", help="your file, which is executed, or a built-in method")
    add_set(parser, "FIELD", "queue_size=8, or network.widths=8,16 and data.path=DIR for a network and a source")
    add_data_folder(parser)


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.check import check_method

    label, broken = "", 0
    for examined in check_method(make_options(CheckOptions, arguments)):
        if examined.label != label:
            label = examined.label
            print(f"{label}: {examined.title}")
        finding = examined.finding
        remark = f": {finding.remark}" if finding.remark else ""
        print(f"  {'holds' if finding.holds else 'FAILS'}  {finding.check}{remark}", flush=True)
        broken += not finding.holds
    failed = f"{counted(broken, 'check')} failed; benchmark/interface.py and CONTRIBUTING.md are the contract"
    print(failed if broken else "the contract holds")
    return 1 if broken else 0
