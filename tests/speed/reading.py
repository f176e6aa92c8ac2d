"""What `tables` costs, with statistics and page: of more records, and of one task in a folder of many."""

import filecmp
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmark.measure.statistics import exact_rank_sum_p
from tests.speed.command import Cost, run_command
from tests.speed.made_up import ShortRun, write_tasks
from tests.speed.timing import Row

METHODS = 20
SMALL, MANY_TASKS, FEW_SEEDS = (4, METHODS, 25), (20, METHODS, 25), (20, METHODS, 5)
"""Numbers of tasks, methods and seeds: of 2,000 records, and in two ways five times as many."""
Turns = list[dict[str, Cost]]


def tables(tree: Path, results: Path, out: Path, *options: str, cache: Path | None = None) -> Cost:
    """Make all tables and the page anew, in a folder of their own."""
    shutil.rmtree(out, ignore_errors=True)
    cost = run_command(tree, "tables", "--results", str(results), "--out", str(out), *options, cache=cache)
    if "torch" in cost.modules:
        raise RuntimeError(f"{tree}: tables imported torch")
    return cost


def rows(tree: Path, other: Path | None, run: ShortRun, rounds: int) -> list[Row]:
    """Return what is measured of a source tree, beside another where there is one, with the records of a short run."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, shape in {"small": SMALL, "tasks": MANY_TASKS, "seeds": FEW_SEEDS, "one": (1, *SMALL[1:])}.items():
            write_tasks(root / name, run, *shape)
        turns = [measured(tree, other, root) for _ in range(rounds)]
        found = [*growth_rows(turns), exact_test_row(rounds), *one_task_rows(tree, root, rounds)]
        if other is not None:
            found = [*comparison_rows(turns, root), *found]
    return found


def measured(tree: Path, other: Path | None, root: Path) -> dict[str, Cost]:
    """Return one turn, so that a slow moment of the machine meets all."""
    turn = {name: tables(tree, root / name, root / f"out-{name}") for name in ("small", "tasks", "seeds")}
    if other is not None:
        turn["other"] = tables(other, root / "small", root / "out-other")
    return turn


def ratio(turns: Turns, above: str, below: str) -> str:
    return f"{statistics.median(turn[above].seconds / turn[below].seconds for turn in turns):.2f}"


def seconds_of(turns: Turns, *names: str) -> str:
    return " and ".join(f"{min(turn[name].seconds for turn in turns):.1f} s" for name in names)


def megabytes_of(turns: Turns, name: str) -> float:
    return min(turn[name].megabytes for turn in turns)


def memory_row(what: str, turns: Turns, above: str, below: str, bar: str) -> Row:
    ours, theirs = (megabytes_of(turns, name) for name in (above, below))
    return [what, f"{ours / theirs:.2f}", bar, f"{ours:.0f} MB and {theirs:.0f} MB"]


def comparison_rows(turns: Turns, root: Path) -> list[Row]:
    differing = different_files(root / "out-small", root / "out-other")
    return [
        ["tables of 2,000 records: now ÷ before", ratio(turns, "small", "other"), "≤ 1.00",
         seconds_of(turns, "small", "other")],
        memory_row("memory of the same: now ÷ before", turns, "small", "other", ""),
        ["files of the same that are not equal", str(len(differing)), "≤ 0", ", ".join(differing[:4])],
    ]  # fmt: skip


def different_files(ours: Path, theirs: Path) -> list[str]:
    names = {str(path.relative_to(folder)) for folder in (ours, theirs) for path in folder.rglob("*") if path.is_file()}
    _, different, missing = filecmp.cmpfiles(ours, theirs, sorted(names), shallow=False)
    return [*different, *missing]


def growth_rows(turns: Turns) -> list[Row]:
    most = megabytes_of(turns, "tasks")
    grown = max(most - megabytes_of(turns, name) for name in ("small", "seeds")) / 1000
    return [
        ["tables of 10,000 records ÷ 2,000: 20 tasks ÷ 4", ratio(turns, "tasks", "small"), "≤ 5.50",
         seconds_of(turns, "tasks", "small")],
        ["tables of 10,000 records ÷ 2,000: 25 seeds ÷ 5", ratio(turns, "tasks", "seeds"), "≤ 5.50",
         seconds_of(turns, "tasks", "seeds")],
        ["memory of 10,000 records − that of 2,000", f"{grown:.2f} GB", "< 1.5 GB", f"{most:.0f} MB in all"],
    ]  # fmt: skip


def exact_test_row(rounds: int) -> Row:
    """Return how the exact test grows: risks are shares of whole images, so that values tie."""
    draws = random.Random(0)

    def test(seeds: int) -> float:
        sample = [[round(draws.gauss(90, 10)) for _ in range(seeds)] for _ in range(2)]
        started = time.process_time()
        exact_rank_sum_p(*sample)
        return time.process_time() - started

    few, many = (min(test(seeds) for _ in range(3 * rounds)) for seeds in (25, 100))
    told = f"{1000 * many:.0f} ms and {1000 * few:.2f} ms"
    return ["exact test of a cell with ties: 100 seeds ÷ 25", f"{many / few:.0f}", "", told]


def one_task_rows(tree: Path, root: Path, rounds: int) -> list[Row]:
    """Return what one task costs in a folder of many, whose other parts of the page are cached by then."""
    cache, one = root / "cache", ("--datasets", "task0")
    tables(tree, root / "tasks", root / "out", cache=cache)
    turns = [
        {name: tables(tree, root / name, root / "out", *one, cache=cache) for name in ("tasks", "one")}
        for _ in range(rounds)
    ]
    return [
        ["tables of one task: in a folder of 20 tasks ÷ in one of its own", ratio(turns, "tasks", "one"), "≤ 2.00",
         seconds_of(turns, "tasks", "one")],
        memory_row("memory of the same", turns, "tasks", "one", "≤ 1.50"),
    ]  # fmt: skip
