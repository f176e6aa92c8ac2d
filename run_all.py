"""Selective-classification benchmark: `python run_all.py --help`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli import main

if TYPE_CHECKING:
    from methods import Registry


def make_registry(plugins: Sequence[Path]) -> "Registry":
    from methods import Registry  # brings in torch, which --help and tables do without

    return Registry(tuple(path.resolve() for path in plugins))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], make_registry))
