"""Where a number came from: code, libraries, machine."""

import platform
import subprocess
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmark.devices import describe
from benchmark.jobs import Job

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("numpy", "scipy", "timm", "torch", "torchvision")


@lru_cache(maxsize=1)
def commit() -> str | None:
    """The commit of the suite, with `+` if the working tree differs from it; None outside a checkout."""
    try:
        head = git("rev-parse", "HEAD")
        return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def environment(device: torch.device, threads: int, ranks: int = 1) -> str:
    """What bit-equality is promised for. A run resumed under another one says so in its table."""
    shared = f", {ranks} ranks" if ranks > 1 else ""
    cpu = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {cpu}, {describe(device)}, {threads} thread(s){shared}"


def provenance() -> dict[str, Any]:
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def process_age() -> float:
    """Seconds since this process was started."""
    return time.time() - float(psutil.Process().create_time())


def codes_of(job: Job, parts: Iterable[tuple[Job, Sequence[str]]]) -> list[str]:
    """The code of a job, and any other that had a part in its result: `parts` are jobs with the codes that did."""
    others = (code for part, codes in parts for code in codes if code != part.code)
    return list(dict.fromkeys([job.code, *others]))
