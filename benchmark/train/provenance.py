"""Describe where a result comes from: code, libraries, machine."""

import platform
import subprocess
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import psutil
import torch

from benchmark.base.program import FROM_WHEEL, ROOT
from benchmark.data.devices import describe, has_streams, model_of
from benchmark.jobs.job import Job
from benchmark.store.provenance import Provenance
from benchmark.store.store import Store

LIBRARIES = ("numpy", "scipy", "timm", "torch", "torchvision")


@lru_cache(maxsize=1)
def commit() -> str | None:
    """Return the commit of the suite, with `+` if the working tree differs from it; None where it has no checkout."""
    if FROM_WHEEL:
        return None
    try:
        top, _, head = git("rev-parse", "--show-toplevel", "HEAD").rpartition("\n")
        if not Path(top).samefile(ROOT):  # it lies within a checkout of something else
            return None
        return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def environment(device: torch.device, threads: int, ranks: int = 1) -> str:
    """Describe the machine. Equal bits are promised for equal descriptions; the table tells where a run has several."""
    shared = f", {ranks} ranks" if ranks > 1 else ""
    return f"torch {torch.__version__}, {processor()}, {describe(device)}, {threads} thread(s){shared}"


@lru_cache(maxsize=1)
def processor() -> str:
    """Return the instructions that torch uses and the processor's model: both decide how sums are split."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = (line.partition(":") for line in cpuinfo.read_text().splitlines()) if cpuinfo.is_file() else ()
    facts = {name.strip(): value.strip() for name, _, value in lines}
    model = [facts[name] for name in ("vendor_id", "cpu family", "model") if name in facts]
    return f"{torch.backends.cpu.get_cpu_capability()} ({' '.join(model) or platform.processor()})"


def new_models(devices: Iterable[str], store: Store) -> list[str]:
    """Return the models of GPU, among those of `devices`, that no record of a results folder was made on."""
    models = {model_of(device) for device in map(torch.device, devices) if has_streams(device)}
    tasks = {manifest.task for manifest in (*store.manifests(), *store.paper_manifests())} if models else set()
    for record in (record for task in sorted(tasks) for record in store.records(task)):
        made_on = record.provenance.environments
        models -= {model for model in models if any(f", {model}," in environment for environment in made_on)}
        if not models:
            break
    return sorted(models)


def provenance() -> Provenance:
    """Return what is the same for all results of this process."""
    return Provenance(commit(), platform.python_version(), platform.platform(), dict(libraries()))


@lru_cache(maxsize=1)  # each is looked up in files of the installation
def libraries() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def process_age() -> float:
    """Return the seconds since this process was started."""
    return time.time() - float(psutil.Process().create_time())


def codes_of(job: Job, parts: Iterable[tuple[Job, Sequence[str]]]) -> list[str]:
    """Return the code of a job, then other codes that had a part in its result, given jobs with their codes."""
    others = (code for part, codes in parts for code in codes if code != part.code)
    return list(dict.fromkeys([job.code, *others]))
