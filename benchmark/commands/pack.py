"""`pack`: keep a small copy of a results folder, without predictions, weights and locks.

Records and learning curves are compressed; no number is lost, and every command reads them as they are. Run it again to
add what is new: nothing that the copy has is lost. Exit code 1 if something could not be copied.
"""

import argparse

from benchmark.commands.options import make_options
from benchmark.library.folder_options import PackOptions

HELP = "keep a small copy of a results folder: compressed records, tables, ledgers, figures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", metavar="RESULTS", help="the results folder, or its URL")
    parser.add_argument("--to", required=True, metavar="DIR", help="the folder of the small copy")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.pack import pack_results

    packed = pack_results(make_options(PackOptions, arguments))
    print(packed.text())
    return 1 if packed.left else 0
