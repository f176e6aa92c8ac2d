"""What one task costs in a folder of many: `python -m tests.speed.reading`. The folder is made up."""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from tabulate import tabulate

from benchmark.store.store import Store
from tests.conftest import ROOT
from tests.speed.grid import METHODS, write_task
from tests.speed.timing import Row, missed

SCRIPT = """
import runpy, sys
from pathlib import Path
try: runpy.run_path('run_all.py', run_name='__main__')
except SystemExit as end: assert not end.code, end.code
print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])
"""
"""`tables`, and at the end the most memory it had, in kB."""


def tables(results: Path, *options: str) -> tuple[float, float]:
    """Seconds and MB."""
    command = [sys.executable, "-c", SCRIPT, "tables", "--results", str(results), *options]
    started = time.perf_counter()
    said = subprocess.check_output(command, cwd=ROOT, text=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started, int(said.splitlines()[-1]) / 1000


def rows_of(count: int, records: int) -> list[Row]:
    draws, one = random.Random(0), ("--datasets", "task0")
    with tempfile.TemporaryDirectory() as folder:
        alone, many = Path(folder, "alone"), Path(folder, "many")
        with patch("os.fsync"):
            write_task(Store(alone), "task0", records // METHODS, draws, epochs=100)
            for index in range(count):
                write_task(Store(many), f"task{index}", records // METHODS, draws, epochs=100)
        whole = tables(many)
        turns = [(tables(many, *one), tables(alone, *one)) for _ in range(3)]
    (again, some), (single, least) = (min(turn[side] for turn in turns) for side in (0, 1))
    size = f"{count} tasks × {records} records"
    return [
        [f"tables of one task, in a folder of {size} ÷ in one of its own", f"{again / single:.2f}", "≤ 2.00",
         f"{again:.1f} s and {single:.1f} s"],
        ["memory of the same ÷ the same", f"{some / least:.2f}", "≤ 1.50", f"{some:.0f} MB and {least:.0f} MB"],
        [f"tables of all {count} ÷ of one of them", f"{whole[0] / again:.2f}", "", f"{whole[0]:.1f} s"],
        ["memory of the same ÷ the same", f"{whole[1] / some:.2f}", "≤ 2.00", f"{whole[1]:.0f} MB"],
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--records", type=int, default=1000)
    arguments = parser.parse_args()
    found = rows_of(arguments.tasks, arguments.records)
    print(tabulate(found, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, found)))


if __name__ == "__main__":
    main()
