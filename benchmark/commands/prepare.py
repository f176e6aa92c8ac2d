"""`prepare`: download or check the data sets of some tasks, decode them once, and verify every checksum."""

import argparse
import sys

from benchmark.commands.options import add_data_folders, add_list, add_plugins, add_set, make_options
from benchmark.library.options import PrepareOptions

HELP = "download or check data sets and cache their images"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "tasks", "TASK", "tasks by name, or paths to task files (.toml)")
    add_data_folders(parser)
    add_set(parser, example="data.image_size=64")
    add_plugins(parser)


def run(arguments: argparse.Namespace) -> int:
    """Try every task, and say of each what it lacks."""
    from benchmark.library.prepare import prepare_data

    failed = False
    for prepared in prepare_data(make_options(PrepareOptions, arguments)):
        if prepared.error:
            print(f"error: {prepared.task}: {prepared.error}", file=sys.stderr)
            failed = True
        else:
            print(prepared.text, flush=True)
    return 2 if failed else 0
