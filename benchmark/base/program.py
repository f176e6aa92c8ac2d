"""Tell where this program lies, and how people call it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder in which `benchmark/` and `methods/` lie: a clone, or a folder of installed packages."""
CARRIED_CONFIGS = ROOT / "benchmark" / "_configs"
"""The copy of `configs/` that a wheel carries."""
FROM_WHEEL = CARRIED_CONFIGS.is_dir()
"""Whether this code was installed from a wheel; else it lies in a clone, as in an editable install."""


def program() -> str:
    """Return what people type to call this program: what they typed now, where that can be told."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("benchmark", "__main__.py"):
        return "python -m benchmark"
    return "selbench" if FROM_WHEEL or called.stem == "selbench" else "python run_all.py"
