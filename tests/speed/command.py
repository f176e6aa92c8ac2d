"""Run a command of some source tree in a process of its own, and tell what it took."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SCRIPT = """
import json, resource, runpy, sys
from pathlib import Path
{before}
def processor_seconds():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime
begun = processor_seconds()
code = 0
try:
    runpy.run_path("run_all.py", run_name="__main__")
except SystemExit as end:
    code = end.code or 0
peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
print(json.dumps([processor_seconds() - begun, peak / 1000, sorted(sys.modules)]), file=sys.stderr)
sys.exit(code)
"""
"""A command, and in the end what it took. The peak is that of the process: rusage would count its parent's too."""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds of user time, the most memory in MB, and the modules that it imported."""

    seconds: float
    megabytes: float
    modules: list[str]
    said: str


def run_command(tree: Path, *words: str, cache: Path | None = None, before: str = "") -> Cost:
    """Run a command with the code of a source tree and one thread; parts of pages are cached in `cache`, or nowhere.

    `before` is Python to be executed first; what that takes does not count.
    """
    with tempfile.TemporaryDirectory() as fresh:
        own = {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache or fresh)}
        command = [sys.executable, "-c", SCRIPT.format(before=before), *words]
        done = subprocess.run(command, cwd=tree, env=os.environ | own, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{tree}: {' '.join(words)} failed: {done.stderr[-2000:]}")
    seconds, megabytes, modules = json.loads(done.stderr.splitlines()[-1])
    return Cost(seconds, megabytes, modules, done.stdout)
