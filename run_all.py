"""Selective-classification benchmark: see `python run_all.py --help`."""

import sys

from benchmark.__main__ import EXAMPLES
from benchmark.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], EXAMPLES))
