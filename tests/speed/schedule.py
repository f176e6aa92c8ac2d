"""How far a simulated run is from the real one: `python -m tests.speed.schedule`. Two workers on this machine."""

import argparse
import json
import subprocess
import sys
import tempfile
import time

from tabulate import tabulate

from tests.conftest import ROOT
from tests.speed.timing import Row, missed

GRIDS = {
    "short jobs": ["--datasets", "digits", "--methods", "sr", "sat", "ccl-sc", "focal", "deep-ensemble"],
    "longer jobs": ["--datasets", "gaussians", "--methods", "sr", "sat", "ccl-sc", "dg", "--set", "epochs=40"],
}
PROGRAM = [sys.executable, str(ROOT / "run_all.py")]


def predicted(grid: list[str], *further: str) -> float:
    command = [*PROGRAM, *grid, "--dry-run", "--cluster", "2xcpu", "--json", *further]
    found = json.loads(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL))
    return float(found["schedule"]["makespan_seconds"])


def real(grid: list[str]) -> float:
    """From the start of the workers to the end of the last job, as the program tells of them."""
    run = subprocess.Popen(
        [*PROGRAM, *grid, "--workers", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert run.stderr is not None
    told = [(time.perf_counter(), line) for line in run.stderr]
    if run.wait():
        raise RuntimeError("".join(line for _, line in told))
    started = next(when for when, line in told if "done already" in line)
    return max(when for when, line in told if line.startswith("[")) - started


def rows_of(name: str, grid: list[str], seeds: int) -> list[Row]:
    """One seed is run, so that there are records; the others are predicted, then run. The probe knows no record."""
    with tempfile.TemporaryDirectory() as folder:
        kept = [*grid, "--results", f"{folder}/results"]
        real([*kept, "--seeds", "1"])
        asked = [*kept, "--seeds", str(seeds)]
        found = {"from records": predicted(asked), "from --probe": predicted(asked, "--probe")}
        took = real(asked)
    return [
        [f"predicted ÷ real makespan, 2 workers, {name}, {source}: the larger by the smaller",
         f"{max(seconds / took, took / seconds):.2f}", "≤ 1.20", f"{seconds:.1f} s predicted, {took:.1f} s real"]
        for source, seconds in found.items()
    ]  # fmt: skip


def rows(seeds: int = 5) -> list[Row]:
    return [row for name, grid in GRIDS.items() for row in rows_of(name, grid, seeds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    found = rows(parser.parse_args().seeds)
    print(tabulate(found, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, found)))


if __name__ == "__main__":
    main()
