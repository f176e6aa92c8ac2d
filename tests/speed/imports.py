"""What it costs to bring in predictions of ImageNet's size: 50,000 × 1,000 logits, two methods, five seeds.

`python -m tests.speed.imports` writes two gigabytes of made-up predictions to a temporary folder.
"""

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from tabulate import tabulate

from tests.speed.command import run_command
from tests.speed.timing import Row, in_turns, missed

SAMPLES, CLASSES, METHODS, SEEDS = 50_000, 1_000, 2, 5
ROUNDS = 3
ROOT = Path(__file__).resolve().parents[2]


def write_runs(folder: Path) -> list[Path]:
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=SAMPLES)
    paths = []
    for method in range(METHODS):
        for seed in range(SEEDS):
            logits = 2 * random.standard_normal((SAMPLES, CLASSES), dtype=np.float32)
            logits[np.arange(SAMPLES), labels] += 12 * random.random(SAMPLES, dtype=np.float32)
            paths.append(folder / f"method{method}-{seed}.npz")
            np.savez(paths[-1], labels=labels, logits=logits)
    return paths


def read_and_sort(paths: list[Path], *, whole: bool) -> None:
    """Read every file, and sort once: the logits of each sample, or the confidences alone."""
    for path in paths:
        with np.load(path) as stored:
            logits = stored["logits"]
        np.argsort(logits, axis=1) if whole else np.argsort(logits.max(axis=1))


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_runs(folder)
        results = folder / "results"
        memory: list[float] = []

        def score() -> None:
            memory.append(run_command(ROOT, "score", *map(str, paths), "--results", str(results), "-q").megabytes)

        def score_anew() -> None:
            shutil.rmtree(results, ignore_errors=True)
            score()

        took = in_turns(
            ROUNDS,
            first=score_anew,
            second=score,
            sort=lambda: read_and_sort(paths, whole=True),
            bare=lambda: read_and_sort(paths, whole=False),
        )
    first, second, sort, bare = (statistics.median(seconds) for seconds in took.values())
    what = f"{METHODS * SEEDS} runs of {SAMPLES:,} × {CLASSES:,}"
    return [
        [f"score, {what} ÷ reading and one argsort of each", f"{first / sort:.2f}", "≤ 3",
         f"{first:.1f} and {sort:.1f} s of wall time"],
        ["the same ÷ reading and one argsort of the confidences", f"{first / bare:.2f}", "", f"{bare:.1f} s"],
        ["the same again, nothing new ÷ the first time", f"{second / first:.2f}", "", f"{second:.1f} s"],
        ["peak memory in GB", f"{max(memory) / 1000:.2f}", "≤ 4", "of which what is mapped can be given back"],
    ]  # fmt: skip


def main() -> int:
    measured = rows()
    print(tabulate(measured, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    return int(any(map(missed, measured)))


if __name__ == "__main__":
    sys.exit(main())
