"""What planning costs before anything trains: 5,000 jobs beside 1,000, none or half of them done already."""

import statistics
import tempfile
from pathlib import Path

from tests.speed.command import Cost, run_command
from tests.speed.made_up import SHORT, ShortRun, write_digits
from tests.speed.timing import Row

SEEDS = (200, 1000)
"""With the methods of the short run: 1,000 and 5,000 jobs."""
PLAN = ("--dry-run", "--json")
IMPORTED = """
from benchmark.launch.grid import Grid
import benchmark.forecast.dry_run, benchmark.launch.suites, methods
assert callable(Grid.launch)
def launch(*_):
    raise SystemExit(0)
Grid.launch = launch
"""
"""What all plans import, and a run that ends where its first job would begin."""


def rows(tree: Path, run: ShortRun, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for state, done in (("none done", 0.0), ("half of them done", 0.5)):
            results = {seeds: Path(folder, f"{state}-{seeds}") for seeds in SEEDS}
            for seeds, place in results.items():
                write_digits(place, run, round(done * seeds))
            for what, options in (("--dry-run", PLAN), ("a run, up to its first job", ())):
                turns = [
                    [planned(tree, results[seeds], seeds, done, options) for seeds in SEEDS] for _ in range(rounds)
                ]
                found.append(row(f"{what}, {state}", turns))
    return found


def planned(tree: Path, results: Path, seeds: int, done: float, options: tuple[str, ...]) -> Cost:
    words = (*SHORT, "--seeds", str(seeds), "--results", str(results), *options)
    cost = run_command(tree, *words, before=IMPORTED)
    if options == PLAN and cost.said.count('"state": "done"') != len(SHORT[3:-2]) * done * seeds:
        raise RuntimeError(f"{tree}: the plan does not find the {done:.0%} of jobs that are done")
    return cost


def row(what: str, turns: list[list[Cost]]) -> Row:
    few, many = (min(turn[side].seconds for turn in turns) for side in (0, 1))
    grown = statistics.median(turn[1].seconds / turn[0].seconds for turn in turns)
    each = 1000 * (many - few) / 4000
    return [
        f"planning 5,000 jobs ÷ 1,000: {what}",
        f"{grown:.2f}",
        "< 5.00",
        f"{many:.2f} s and {few:.2f} s, {each:.2f} ms a job",
    ]
