"""Selective-classification benchmark: see EXAMPLES, or `python run_all.py --help`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli import main

if TYPE_CHECKING:
    from methods import Registry

EXAMPLES = """\
examples:
  python run_all.py                                             the embedded demo: two small tasks, minutes on a laptop
  python run_all.py prepare cifar100 celeba                     download or check two data sets, decode them once
  python run_all.py --datasets cifar100 celeba --seeds 5        the paper's grid on them
  python run_all.py --datasets digits --methods sr sat+em       some methods only
  python run_all.py --datasets cifar10 --set optimizer.lr=0.05 --set method.CCL-SC.weight=1 --dry-run
  python run_all.py --plugin my_method.py --methods sr my-label --datasets digits
  python run_all.py tables --results results --coverages 100 90 80
  python run_all.py doctor                                      is this GPU right, and how fast? two minutes, no data
  python run_all.py paper all --dry-run                         what the paper's fifteen tables need
  python run_all.py explain digits sr 90                        the runs and the test behind a cell

Interrupt at any time: the same command continues where it stopped, and finished jobs are never trained again.
Exit codes: 0 all done, 1 some job failed, 2 bad input, 130 interrupted, 143 terminated.
"""


def make_registry(plugins: Sequence[Path]) -> "Registry":
    from methods import Registry  # brings in torch, which --help and tables do without

    return Registry(tuple(path.resolve() for path in plugins))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], make_registry, EXAMPLES))
