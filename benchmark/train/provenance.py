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

from benchmark.devices import describe, has_streams, model_of
from benchmark.jobs import Job
from benchmark.store import Store

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
    return f"torch {torch.__version__}, {processor()}, {describe(device)}, {threads} thread(s){shared}"


@lru_cache(maxsize=1)
def processor() -> str:
    """Return the instructions that torch uses and the processor's model: both decide how sums are split."""
    told = Path("/proc/cpuinfo")
    lines = (line.partition(":") for line in told.read_text().splitlines()) if told.is_file() else ()
    facts = {name.strip(): value.strip() for name, _, value in lines}
    model = [facts[name] for name in ("vendor_id", "cpu family", "model") if name in facts]
    return f"{torch.backends.cpu.get_cpu_capability()} ({' '.join(model) or platform.processor()})"


def new_models(devices: Iterable[str], store: Store) -> list[str]:
    """Return the models of GPU, among those of `devices`, that no record of a results folder was made on."""
    models = {model_of(device) for device in map(torch.device, devices) if has_streams(device)}
    tasks = {manifest["task"] for manifest in (*store.manifests(), *store.paper_manifests())} if models else set()
    for record in (record for task in sorted(tasks) for record in store.records(task)):
        made_on = record["provenance"].get("environments", [])
        models -= {model for model in models if any(f", {model}," in environment for environment in made_on)}
        if not models:
            break
    return sorted(models)


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
