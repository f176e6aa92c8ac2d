"""What commands cost that train nothing: `python -m tests.speed.commands [--against FOLDER]`.

FOLDER is another source tree, such as a clone of an earlier commit: both make the same tables in turns. Times are those
that processes spend computing (user time), which other work on the machine changes little.
"""

import argparse
import sys
from pathlib import Path

from tabulate import tabulate

from tests.conftest import ROOT
from tests.speed import planning, reading
from tests.speed.command import run_command
from tests.speed.made_up import short_run
from tests.speed.timing import Row, missed

HEAVY = ("torch", "pandas", "scipy")


def help_rows(tree: Path, other: Path | None) -> list[Row]:
    """Return how many modules --help imports, and which of the large packages."""
    modules = run_command(tree, "--help").modules
    before = f"before: {len(run_command(other, '--help').modules)}" if other is not None else ""
    found, numpy = [name for name in HEAVY if name in modules], "with" if "numpy" in modules else "without"
    return [
        ["modules that --help imports", str(len(modules)), "", "; ".join(filter(None, [f"{numpy} numpy", before]))],
        [f"of them {', '.join(HEAVY)}", str(len(found)), "≤ 0", ", ".join(found)],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another source tree to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    other = arguments.against and arguments.against.resolve()
    run = short_run(other or ROOT)
    rows = help_rows(ROOT, other)
    rows += reading.rows(ROOT, other, run, arguments.rounds)
    rows += planning.rows(ROOT, run, arguments.rounds)
    print(tabulate(rows, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, rows)))


if __name__ == "__main__":
    main()
