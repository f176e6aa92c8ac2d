"""A grid that is killed again and again, at random instants and in the middle of file operations, and a long one.

`pytest -m crash --kills 200` kills more often than the thirty times of every run (twenty in CI).
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import ROOT, TINY
from tests.store.test_damage import contents
from tests.train.test_evaluation import write_sets

pytestmark = pytest.mark.crash

KILLS_PER_ROUND = 8
KILLER = '''
"""Every process of a run counts what it does to files, and kills them all at the one that it was told."""
import os, signal

left, moment = os.environ.get("KILL_AT", "0 never").split()
left = int(left)

def deadly(operation):
    def counted(*arguments, **options):
        global left
        left -= 1
        if left == 0 and moment == "before":
            os.killpg(0, signal.SIGKILL)
        result = operation(*arguments, **options)
        if left == 0 and moment == "after":
            os.killpg(0, signal.SIGKILL)
        return result
    return counted

for name in ("replace", "fsync", "unlink", "mkdir"):
    setattr(os, name, deadly(getattr(os, name)))
'''


@dataclass
class Grid:
    """Several methods with a shared warm-up, two seeds, and other images to evaluate them on; on two workers."""

    folder: Path
    kills: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "hook").mkdir(parents=True)
        (self.folder / "hook" / "sitecustomize.py").write_text(KILLER)
        (shift, *_) = write_sets(self.folder)
        images = f'[[evaluate]]\nkind = "shift"\nimages = "{Path(shift).name}"\n'
        (self.folder / "tiny.toml").write_text(TINY + images)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def start(self, kill_at: str = "0 never", *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(ROOT / "run_all.py"), "--datasets", str(self.folder / "tiny.toml"),
                   "--results", str(self.results), "--workers", "2", *words]  # fmt: skip
        environment = {**os.environ, "KILL_AT": kill_at, "PYTHONPATH": str(self.folder / "hook")}
        return subprocess.Popen(command, env=environment, start_new_session=True, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)  # fmt: skip

    def files(self) -> set[Path]:
        return set(self.results.rglob("*"))

    def run_and_kill(self, draw: random.Random) -> bool:
        """Whether it was killed before it was done."""
        if draw.random() < 0.6:
            moment = f"{draw.randint(1, 80)} {draw.choice(['before', 'after'])}"
            process = self.start(moment)
        else:
            process, before = self.start(), self.files()
            while process.poll() is None and self.files() == before:
                time.sleep(0.01)
            moment = f"{draw.uniform(0, 3):.3f} s"
            end = time.monotonic() + float(moment.split()[0])
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        _, stderr = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL), stderr
        if process.returncode:
            self.kills.append(moment)
        return process.returncode != 0

    def finish(self) -> None:
        process = self.start()
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, (self.kills, stderr)
        assert "is damaged" not in stderr, (self.kills, stderr)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    grid = Grid(tmp_path_factory.mktemp("unbroken"))
    grid.finish()
    return contents(grid.results)


def test_killed_anywhere_it_ends_with_the_same_bits(
    unbroken: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    wanted, killed, number = request.config.getoption("--kills"), 0, 0
    while killed < wanted:
        grid, draw = Grid(tmp_path / f"round-{number}"), random.Random(number)
        while len(grid.kills) < KILLS_PER_ROUND and grid.run_and_kill(draw):
            pass
        grid.finish()
        assert contents(grid.results) == unbroken, grid.kills
        left = [path for path in grid.files() if path.suffix in (".tmp", ".lock", ".pt", ".damaged", ".txt")]
        assert not left, grid.kills
        killed += len(grid.kills)
        number += 1
        shutil.rmtree(grid.folder)
    assert number < wanted, "several kills a round"


def test_a_long_grid_leaks_nothing(tmp_path: Path) -> None:
    """Five hundred jobs: memory and open files of every process are the same after the first hundred and at the end."""
    grid = Grid(tmp_path / "soak")
    small = ("--set", "data.train_images=40", "--set", "data.test_images=40", "--max-steps", "2", "--evaluate", "none")
    process = grid.start("0 never", "--methods", "sr", "dg", "--seeds", "250", "-q", *small)
    samples: list[tuple[int, dict[int, tuple[int, int]]]] = []
    while process.poll() is None:
        done = len(list((grid.results / "tiny").glob("*/*/seed-*/record.json")))
        samples.append((done, measured(process.pid)))
        time.sleep(0.1)
    said = process.communicate()
    assert process.returncode == 0, said
    early = next(sample for done, sample in samples if done >= 100)
    late = next(sample for done, sample in reversed(samples) if done < 480)
    assert len(early) == len(late) == 3, "the parent and two workers, the same all the time"
    for pid, (memory, open_files) in early.items():
        assert late[pid][0] < memory + 30e6, (pid, memory, late[pid])
        assert late[pid][1] <= open_files + 1, (pid, open_files, late[pid])
    assert len(list(grid.results.rglob("record.json"))) == 500
    assert not [path for path in grid.files() if path.suffix in (".tmp", ".lock", ".pt", ".txt")]
    assert not any(psutil.pid_exists(pid) for pid in late)


def measured(pid: int) -> dict[int, tuple[int, int]]:
    """(bytes, open files) of a process and of those it started that train; those that just end are passed over."""
    found = {}
    with contextlib.suppress(psutil.Error):
        for process in [psutil.Process(pid), *psutil.Process(pid).children()]:
            if "resource_tracker" not in " ".join(process.cmdline()):
                found[process.pid] = (process.memory_info().rss, process.num_fds())
    return found
