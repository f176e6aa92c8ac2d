"""`tables`: rebuild the tables and the report of a results folder from its records. Needs no torch."""

import argparse
import sys
from typing import TYPE_CHECKING

from benchmark.commands.options import (
    add_list,
    add_out,
    add_plugins,
    add_selection,
    add_table_options,
    make_options,
    showing,
    terminal_width,
)
from benchmark.library.options import TablesOptions

if TYPE_CHECKING:
    from benchmark.library.tables import Tables

HELP = "rebuild the tables and the report of a results folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_list(parser, "--paper", "NAME", "published tables of this folder by name, or 'all' (see: paper)")
    add_table_options(parser)
    add_plugins(parser)
    add_out(parser, "tables and report")


def run(arguments: argparse.Namespace) -> int:
    from benchmark.library.tables import make_tables

    with showing(show) as ended:
        ended.outcome = make_tables(make_options(TablesOptions, arguments))
    return ended.code


def show(tables: "Tables") -> None:
    """Print the tables, and to the other stream what was written."""
    print(tables.text(terminal_width()), end="", flush=True)
    print(tables.remark, file=sys.stderr)
