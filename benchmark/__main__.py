"""The way in: `selbench` and `python -m benchmark` begin here."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from benchmark import cli
from benchmark.base.children import SAFE_PATH
from benchmark.base.program import ROOT

EXAMPLES = """\
examples:
  {program} tour                                        what it does, step by step: 90 seconds, no download
  {program}                                             the embedded demo: two small tasks, minutes on a laptop
  {program} prepare cifar100 celeba                     download or check two data sets, decode them once
  {program} --datasets cifar100 celeba --seeds 5        the paper's grid on them
  {program} --datasets digits --methods sr sat+em       some methods only
  {program} --datasets cifar10 --set optimizer.lr=0.05 --set method.CCL-SC.weight=1 --dry-run
  {program} --plugin my_method.py --methods sr my-label --datasets digits
  {program} score vit-*.npz resnet-*.npz --results mine predictions of your own: docs/own-predictions.md
  {program} tables --results results --coverages 100 90 80
  {program} watch                                       follow a run in the browser
  {program} doctor                                      is this GPU right, and how fast? two minutes, no data
  {program} paper all --dry-run                         what the paper's fifteen tables need
  {program} explain digits sr 90                        the runs and the test behind a cell

Interrupt at any time: the same command continues where it stopped, and finished jobs are never trained again.
Exit codes: 0 all done, 1 some job failed, 2 bad input, 130 interrupted, 143 terminated.
"""
CLONE = ("run_all.py", "benchmark", "methods", "configs")
"""What lies at the top of a clone."""


def other_clone() -> Path | None:
    """Return the clone that the current folder lies in; None where there is none, or where this code is its own."""
    with suppress(OSError):  # no such folder any more, or one above it that cannot be read
        here = Path.cwd()
        for folder in (here, *here.parents):
            if all((folder / name).exists() for name in CLONE):
                return None if (folder / "benchmark").resolve() == ROOT / "benchmark" else folder
    return None


def main() -> int:
    """Do what the command line says. In a clone its own `run_all.py` does, so that code, methods and tasks agree."""
    clone = other_clone()
    if clone is not None:
        script = clone / "run_all.py"
        if not {(clone / name).stat().st_uid for name in CLONE} <= {0, os.geteuid()}:
            advice = f"if you trust it, call: python {script}; else go to another folder"
            print(f"error: '{clone}' is a clone of the suite that is not yours; {advice}", file=sys.stderr)
            return 2
        os.environ.pop(SAFE_PATH, None)  # with it, Python would not look for modules beside the script
        os.execv(sys.executable, [sys.executable, str(script), *sys.argv[1:]])
    return cli.main(sys.argv[1:], EXAMPLES)


if __name__ == "__main__":
    sys.exit(main())
