"""`python -m tests.speed`: one table of ratios, each measured in one run beside what it is compared with."""

import argparse
import platform
import sys

import torch
from tabulate import tabulate

from tests.speed import grid, steps
from tests.speed.timing import missed

TASKS = {"digits": 10, "gaussians": 10, "cifar10-cpu": 2, "cifar100-cpu": 2, "cifar100": 1}
"""Tasks at whose sizes the main method is measured, and how many times as many rounds each takes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    rows = [
        steps.trainer_row(2 * rounds),
        *(steps.contrast_row(name, many * rounds) for name, many in TASKS.items()),
        *steps.loss_rows(rounds),
        steps.classic_row(rounds),
        grid.workers_row(max(1, rounds // 2)),
        grid.ranking_row(rounds),
        grid.saving_row(),
    ]
    print(f"torch {torch.__version__}, {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, one thread\n")
    print(tabulate(rows, ["what", "measured", "bar", "remark"], tablefmt="pipe", disable_numparse=True))
    sys.exit(any(map(missed, rows)))


if __name__ == "__main__":
    main()
