"""Processes that are stopped, killed, or killed by themselves, and grids that run twice at once; all for real."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmark.store.store import Store
from tests.conftest import ROOT, run_all, run_here
from tests.launch.test_grid import files
from tests.store.test_damage import contents

pytestmark = pytest.mark.crash
EPOCHS = 4
WITNESS = '''
"""Cross-entropy that writes down each epoch it begins, and then does what a test asks for."""
import ctypes, os, signal, time
from dataclasses import dataclass
from pathlib import Path
import torch
from torch.nn.functional import cross_entropy
from benchmark.interface import Method, Step

HERE = Path(__file__).parent

def once():
    """True for the first to ask."""
    try:
        os.close(os.open(HERE / "asked", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

class Witness(Method):
    title, reference, labels = "witness", "nobody 2026", {f"W{n}": {"number": n} for n in range(COUNT)}

    @dataclass(frozen=True)
    class Config:
        number: int = 0

    def training_step(self, batch, progress):
        number, epoch = self.config.number, progress.epoch
        if progress.step == 0:
            with (HERE / "seen.txt").open("a") as seen:
                seen.write(f"{os.getpid()} {number} {epoch}\\n")
            BEHAVIOUR
        return Step(cross_entropy(self.network(batch.images)[0], batch.labels))

METHOD = Witness
'''


@dataclass(frozen=True)
class Stage:
    """A folder with a task, a plugin and results."""

    folder: Path

    def prepare(self, behaviour: str, count: int = 4, checkpoint_seconds: int = 0) -> "Stage":
        from tests.conftest import TINY

        self.folder.mkdir(exist_ok=True)
        plugin = WITNESS.replace("COUNT", str(count)).replace("BEHAVIOUR", behaviour)
        (self.folder / "witness.py").write_text(plugin)
        text = TINY.replace("checkpoint_seconds = 0", f"checkpoint_seconds = {checkpoint_seconds}")
        (self.folder / "tiny.toml").write_text(text)
        return self

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def words(self, *more: object) -> list[str]:
        given = ["--datasets", self.folder / "tiny.toml", "--plugin", self.folder / "witness.py"]
        given += ["--methods", "witness", "--seeds", "1", "--reference", "w0", "--results", self.results]
        return [str(word) for word in (*given, *more)]

    def start(self, *more: object, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen([sys.executable, str(ROOT / "run_all.py"), *self.words(*more)], text=True,
                                start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)  # fmt: skip

    def seen(self) -> list[tuple[int, int, int]]:
        """(process, job, epoch), in the order they were begun."""
        path = self.folder / "seen.txt"
        lines = path.read_text().splitlines() if path.is_file() else []
        return [(int(a), int(b), int(c)) for a, b, c in (line.split() for line in lines)]

    def wait_for(self, happened: Callable[[], bool], *processes: "subprocess.Popen[str]", seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, "nothing happened"
            for process in processes:
                assert process.poll() is None, process.communicate()
            time.sleep(0.01)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "stage")


def expected(tmp_path: Path, count: int) -> dict[str, Any]:
    """What an undisturbed run of the same plugin leaves."""
    made = Stage(tmp_path / "undisturbed").prepare("pass", count)
    assert run_here(*made.words()).returncode == 0
    return without_ids(contents(made.results))


def without_ids(found: dict[str, Any]) -> dict[str, Any]:
    """A plugin's text is part of its jobs' ids, and the text differs by what it does to itself."""
    kept = {}
    for name, content in found.items():
        parts = name.split("/")
        if isinstance(content, dict):
            content = {key: value for key, value in content.items() if key not in ("job", "identity")}
            number = found[name]["identity"]["config"]["number"]
            kept[f"{number}/{parts[-1]}"] = content
    return kept


def finish(process: "subprocess.Popen[str]", code: int = 0) -> str:
    """Its standard error."""
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    return stderr


def nothing_left(stage: Stage) -> None:
    """No process, no temporary file, no lock."""
    ours = str(stage.folder)
    alive = [p.pid for p in psutil.process_iter(["cmdline"]) if any(ours in w for w in p.info["cmdline"] or ())]
    assert not alive
    left = [path for path in stage.results.rglob("*") if path.suffix in (".tmp", ".lock", ".pt", ".txt")]
    assert not left


def test_two_at_once_do_each_job_once_between_them(stage: Stage, tmp_path: Path) -> None:
    stage.prepare("time.sleep(0.3)", count=6)
    both = [stage.start("--workers", 1) for _ in range(2)]
    for process in both:
        stderr = finish(process)
        assert "another process works on some of these jobs" in stderr
        assert "[6/6]" in stderr
    seen = stage.seen()
    assert Counter((job, epoch) for _, job, epoch in seen) == {(j, e): 1 for j in range(6) for e in range(EPOCHS)}
    assert len({process for process, *_ in seen}) == 2, "both took part"
    assert all(len({process for process, j, _ in seen if j == job}) == 1 for job in range(6))
    assert without_ids(contents(stage.results)) == expected(tmp_path, 6)
    nothing_left(stage)


def test_two_at_once_share_a_trunk(tmp_path: Path) -> None:
    """Also where the warm-up is no job of the grid, so that one grows it and the other waits."""
    from tests.conftest import TINY

    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY)
    words = ["--datasets", task, "--methods", "sat", "sat+em", "dg", "--results"]
    command = [sys.executable, str(ROOT / "run_all.py"), *map(str, words)]
    both = [
        subprocess.Popen([*command, str(results), "--workers", "2"], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    for process in both:
        finish(process)
    assert run_here(*words, tmp_path / "alone").returncode == 0
    assert contents(results) == contents(tmp_path / "alone")
    assert not [path for path in results.rglob("*") if path.suffix in (".pt", ".tmp", ".lock") or "trunk" in path.name]


@contextmanager
def held(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Stop a process and its workers for the duration of the block, so that no test depends on who is faster."""
    os.killpg(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGCONT)


def test_two_grids_that_share_a_warm_up_only(tmp_path: Path) -> None:
    """One has it as a job; the other, which would put it in front, waits and branches off as well."""
    from tests.conftest import TINY

    task, results = tmp_path / "tiny.toml", tmp_path / "results"
    task.write_text(TINY.replace("epochs = 4", "epochs = 400").replace("warmup_epochs = 2", "warmup_epochs = 100"))
    words = ["--datasets", task, "--seeds", 1, "--workers", 1, "-v", "--results", results, "--reference", "sat"]
    command = [sys.executable, str(ROOT / "run_all.py"), *map(str, words), "--methods"]
    pipes: dict[str, Any] = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    first = subprocess.Popen([*command, "sr", "sat", "dg"], start_new_session=True, **pipes)
    assert first.stderr is not None
    assert any("SR seed 0 epoch 1/400" in line for line in first.stderr)
    with held(first):
        second = subprocess.Popen([*command, "sat", "dg"], **pipes)
        assert second.stderr is not None
        assert any("another process works on some of these jobs" in line for line in second.stderr)
    with ThreadPoolExecutor() as pool:  # a full pipe would stop them
        said = "".join(pool.map(finish, [first, second]))
    assert "warm-up (SR) seed 0 epoch" not in said
    assert "SAT seed 0 epoch 1/" not in said
    assert not [path for path in results.rglob("*") if path.suffix in (".pt", ".tmp", ".lock") or "trunk" in path.name]


def test_jobs_of_a_dead_one_are_taken_over_and_of_a_live_one_never(stage: Stage, tmp_path: Path) -> None:
    """The first is only stopped, for as long as we like: its job stays its own. Then it is killed."""
    stage.prepare("time.sleep(0.3)", count=3)
    first = stage.start("--workers", 1)
    stage.wait_for(lambda: len(stage.seen()) >= 2, first)
    (worker, job, _) = stage.seen()[0]
    os.killpg(first.pid, signal.SIGSTOP)
    second = stage.start("--workers", 1)
    stage.wait_for(lambda: len(list(stage.results.rglob("record.json"))) == 2, second)
    time.sleep(3)
    assert second.poll() is None
    assert {process for process, j, _ in stage.seen() if j == job} == {worker}
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    finish(second)
    taken_over = [epoch for process, j, epoch in stage.seen() if j == job and process != worker]
    assert taken_over, "by the other process"
    assert taken_over[0] >= 1, "from the last checkpoint"
    assert without_ids(contents(stage.results)) == expected(tmp_path, 3)
    nothing_left(stage)


def test_workers_end_with_their_parent(stage: Stage) -> None:
    stage.prepare("time.sleep(60)", count=2)
    process = stage.start("--workers", 2)
    stage.wait_for(lambda: len(stage.seen()) == 2, process)
    process.kill()
    process.communicate()
    workers = [pid for pid, *_ in stage.seen()]
    stage.wait_for(lambda: not any(psutil.pid_exists(pid) for pid in workers), seconds=20)


@pytest.mark.parametrize("workers", [0, 2])
def test_sigterm_keeps_the_last_checkpoint(stage: Stage, tmp_path: Path, workers: int) -> None:
    stage.prepare("time.sleep(60 if epoch == 2 and once() else 0.05)", count=1)
    process = stage.start("--workers", workers)
    stage.wait_for(lambda: (stage.folder / "asked").exists(), process)
    process.terminate()
    assert finish(process, 128 + signal.SIGTERM).splitlines()[-1] == "terminated; the same command continues from here"
    assert [epoch for *_, epoch in stage.seen()] == [0, 1, 2]
    assert list(files(stage.results, "checkpoint.pt"))
    finish(stage.start("--workers", workers))
    assert [epoch for *_, epoch in stage.seen()] == [0, 1, 2, 2, 3]
    assert without_ids(contents(stage.results)) == expected(tmp_path, 1)
    nothing_left(stage)


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_once_saves_the_step_and_twice_does_not_wait(stage: Stage, tmp_path: Path, workers: int) -> None:
    """No checkpoint is due for long: only the first Ctrl-C makes the job save one, after the step it is in."""
    stage.prepare("time.sleep(2 if epoch == 1 else 60 if epoch == 2 and once() else 0)", 1, checkpoint_seconds=1000)
    process = stage.start("--workers", workers)
    stage.wait_for(lambda: len(stage.seen()) == 2, process)
    os.killpg(process.pid, signal.SIGINT)
    stderr = finish(process, 130).splitlines()
    assert stderr[-2:] == ["stopping as soon as each job has saved its state; press Ctrl-C again to stop at once",
                           "interrupted; the same command continues from here"]  # fmt: skip
    process = stage.start("--workers", workers)
    stage.wait_for(lambda: (stage.folder / "asked").exists(), process)
    started = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None, "waits for the step"
    os.killpg(process.pid, signal.SIGINT)
    finish(process, 130)
    assert time.monotonic() - started < 30
    finish(stage.start("--workers", workers))
    assert [epoch for *_, epoch in stage.seen()] == [0, 1, 2, 2, 3], "epochs 0 and 1 are trained once"
    assert without_ids(contents(stage.results)) == expected(tmp_path, 1)
    nothing_left(stage)


DEATHS = {
    "segfault": ("print('last words', flush=True); ctypes.string_at(0)", "SIGSEGV", "Segmentation fault"),
    "out-of-memory killer": ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL; perhaps for lack of memory", "last"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_worker_that_dies_costs_its_job_one_retry(stage: Stage, tmp_path: Path, death: str) -> None:
    deadly, reason, _ = DEATHS[death]
    stage.prepare(f"if number == 1 and epoch == 2 and once(): {deadly}", count=3)
    stderr = finish(stage.start("--workers", 2))
    assert f"tiny W1 seed 0: its worker process died ({reason}" in stderr
    assert "; trying again" in stderr
    assert [epoch for _, job, epoch in stage.seen() if job == 1] == [0, 1, 2, 2, 3], "from its checkpoint"
    assert without_ids(contents(stage.results)) == expected(tmp_path, 3)
    assert not files(stage.results, "error.txt", "log.txt")
    nothing_left(stage)


@pytest.mark.parametrize(("retries", "deaths"), [(0, 1), (1, 2)])
def test_the_last_death_is_recorded_with_the_tail_of_the_log(stage: Stage, retries: int, deaths: int) -> None:
    deadly, reason, said = DEATHS["segfault"]
    stage.prepare(f"if number == 1 and epoch == 2: {deadly}", count=3)
    stderr = finish(stage.start("--workers", 2, "--retries", retries), 1)
    assert stderr.count("trying again") == retries
    assert len([1 for _, job, epoch in stage.seen() if (job, epoch) == (1, 2)]) == deaths
    assert len(files(stage.results, "record.json")) == 2, "not the grid"
    (error,) = files(stage.results, "error.txt").values()
    lines = error.decode().splitlines()
    assert f"its worker process died ({reason})" in lines[-1]
    assert "last words" in lines
    assert said in error.decode()
    assert "witness.py" in error.decode(), "where in the program it was"


def test_a_death_is_noticed_though_a_child_of_the_worker_lives(stage: Stage, tmp_path: Path) -> None:
    """It has inherited the worker's end of the pipe."""
    fork = (
        "if epoch == 1 and once():\n                child = os.fork()\n                if child == 0: time.sleep(60)\n"
    )
    tell = "                (HERE / 'child').write_text(str(child)); os.kill(os.getpid(), signal.SIGKILL)"
    stage.prepare(fork + tell, count=1)
    process = stage.start("--workers", 1)
    stage.wait_for(lambda: any(stage.results.rglob("record.json")), process, seconds=30)
    child = psutil.Process(int((stage.folder / "child").read_text()))
    assert child.status() != psutil.STATUS_ZOMBIE
    child.kill()
    assert "its worker process died (SIGKILL" in finish(process)
    assert without_ids(contents(stage.results)) == expected(tmp_path, 1)
    nothing_left(stage)


def test_out_of_memory_says_what_to_lower_and_the_others_go_on(stage: Stage) -> None:
    """An allocation that really fails, and what a GPU would say, which this machine need not have."""
    enough = "if number == 0: torch.empty(2**60, dtype=torch.uint8)\n            "
    stage.prepare(enough + "if number == 1: raise torch.cuda.OutOfMemoryError('CUDA out of memory. Tried …')", count=3)
    result = run_here(*stage.words())
    assert result.returncode == 1
    for label in ("W0", "W1"):
        assert f"tiny {label} seed 0: FAILED: cpu is out of memory: lower --data-budget" in result.stderr
    assert "Traceback" not in result.stderr
    assert len(files(stage.results, "record.json")) == 1
    assert all(b"out of memory: lower" in text for text in files(stage.results, "error.txt").values())


def test_a_method_that_exits_fails_its_job_only(stage: Stage) -> None:
    stage.prepare("if number == 0: raise SystemExit(3)", count=2)
    result = run_here(*stage.words())
    assert result.returncode == 1
    assert "W0 seed 0: FAILED: SystemExit: 3" in result.stderr
    assert len(files(stage.results, "record.json")) == 1


def test_a_job_that_failed_is_tried_again_by_the_next_run(stage: Stage) -> None:
    stage.prepare("if number == 0 and once(): raise ValueError('not today')", count=2)
    assert run_here(*stage.words()).returncode == 1
    assert files(stage.results, "error.txt")
    assert run_all(*stage.words(), "--workers", 1).returncode == 0
    assert not files(stage.results, "error.txt")


def no_larger_than(size: int) -> Callable[[], None]:
    """For a process that is to be started: no file of its own may grow beyond this."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize(
    ("workers", "size", "what"),
    [(0, 200, "manifests/tiny.json"), (2, 4000, "checkpoint.pt")],
)
def test_files_that_cannot_be_written(stage: Stage, tmp_path: Path, workers: int, size: int, what: str) -> None:
    stage.prepare("pass", count=2)
    stderr = finish(stage.start("--workers", workers, preexec_fn=no_larger_than(size)), 1)
    last = stderr.splitlines()[-1]
    assert last.startswith("error: cannot write '")
    assert f"{what}': File too large; make room" in last
    assert not files(stage.results, "record.json", "checkpoint.pt")
    assert not list(stage.results.rglob("*.tmp"))
    finish(stage.start("--workers", workers))
    assert without_ids(contents(stage.results)) == expected(tmp_path, 2)
    nothing_left(stage)


@pytest.fixture
def small_disk(stage: Stage) -> Iterator[Callable[[str], None]]:
    """The results on a disk of their own; call it with mount options to change them."""
    stage.results.mkdir(parents=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(stage.results)], capture_output=True)
    if made.returncode:
        pytest.skip("mounting is refused here; the tests with a limit on file sizes stand in")
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", stage.results], check=True) and None
    finally:
        subprocess.run(["umount", "-l", str(stage.results)], check=True)


def test_a_full_disk_ends_the_run_and_room_continues_it(
    stage: Stage, tmp_path: Path, small_disk: Callable[[str], None]
) -> None:
    """Room for so much, then for a little more, as often as it takes; what was done in between stays done."""
    stage.prepare("pass", count=4)
    done: list[int] = []
    for kilobytes in (64, 192, 384, 4096):
        small_disk(f"size={kilobytes}k")
        process = stage.start("--workers", 2)
        _, stderr = process.communicate(timeout=300)
        assert "Traceback" not in stderr
        done.append(len(whole_records(stage.results)))
        assert len(files(stage.results, "record.json")) == done[-1], "none is half-written"
        if process.returncode == 0:
            break
        assert process.returncode == 1
        assert "No space left on device; make room" in stderr.splitlines()[-1]
    assert process.returncode == 0
    assert done == sorted(done)
    assert done[0] == 0 and done[-1] == 4
    assert without_ids(contents(stage.results)) == expected(tmp_path, 4)
    nothing_left(stage)


def whole_records(results: Path) -> list[Path]:
    store = Store(results)
    folders = (path.parent.relative_to(results) for path in results.rglob("record.json"))
    return [folder for folder in folders if store.read_record(folder) is not None]


def test_a_read_only_disk_is_refused_and_what_is_there_can_still_be_shown(
    stage: Stage, tmp_path: Path, small_disk: Callable[[str], None]
) -> None:
    stage.prepare("time.sleep(0.2)", count=3)
    small_disk("size=64m")
    process = stage.start("--workers", 0)
    stage.wait_for(lambda: any(stage.results.rglob("record.json")), process)
    process.terminate()
    finish(process, 143)
    small_disk("ro")
    before = len(whole_records(stage.results))
    refused = run_here(*stage.words())
    assert refused.returncode == 2
    assert refused.stderr.endswith("Read-only file system; name another with --results DIR\n")
    planned = run_here(*stage.words(), "--dry-run")
    assert f"3 jobs: {before} done" in planned.stdout
    small_disk("rw")
    again = run_here(*stage.words())
    assert f"3 jobs, {before} done already" in again.stderr
    assert without_ids(contents(stage.results)) == expected(tmp_path, 3)
    nothing_left(stage)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_where_a_folder_should_be_fails_its_jobs_only(stage: Stage, workers: int) -> None:
    stage.prepare("pass", count=1)
    (stage.results / "tiny").mkdir(parents=True)
    (stage.results / "tiny" / "cross_entropy").write_text("in the way")
    words = [*stage.words("--workers", workers), "--methods", "witness", "sr"]
    result = run_all(*words)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "trying again" not in result.stderr
    assert "tiny SR seed 0: FAILED: " in result.stderr
    assert len(files(stage.results, "record.json")) == 1


def test_not_even_a_folder_can_be_made(stage: Stage, tmp_path: Path, small_disk: Callable[[str], None]) -> None:
    """A disk without a free inode: it is the claim that fails."""
    stage.prepare("pass", count=2)
    small_disk("size=4m,nr_inodes=6")
    stderr = finish(stage.start("--workers", 1), 1)
    assert stderr.splitlines()[-1].startswith("error: cannot write '")
    assert "No space left on device; make room" in stderr.splitlines()[-1]
    assert "trying again" not in stderr
    small_disk("size=4m,nr_inodes=1000")
    finish(stage.start("--workers", 1))
    assert without_ids(contents(stage.results)) == expected(tmp_path, 2)


def test_no_room_for_anything(stage: Stage) -> None:
    stage.prepare("pass", count=1)
    stderr = finish(stage.start("--workers", 0, preexec_fn=no_larger_than(0)), 1)
    assert f"cannot write '{stage.results}': File too large; make room" in stderr
    assert not list(stage.results.iterdir())


def test_whoever_reads_our_output_may_leave(stage: Stage) -> None:
    stage.prepare("pass", count=1)
    assert run_here(*stage.words()).returncode == 0
    command = [sys.executable, str(ROOT / "run_all.py"), "tables", "--results", str(stage.results)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr
    assert "None" not in stderr


def test_folders_may_go_while_another_process_begins(tmp_path: Path) -> None:
    store, over = Store(tmp_path), threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for name in map(str, range(20)):
                (tmp_path / "tiny" / name / "trunk").mkdir(parents=True, exist_ok=True)
            shutil.rmtree(tmp_path / "tiny", ignore_errors=True)

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(300):
            store.check_writable()
    finally:
        over.set()
        other.join()
