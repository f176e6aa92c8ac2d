"""Selective-classification benchmark: see `python run_all.py --help`."""

import sys

from benchmark.__main__ import EXAMPLES, make_registry
from benchmark.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], make_registry, EXAMPLES))
