"""Learning curves for TensorBoard: the same numbers as in history.csv, however often a job was begun."""

import csv
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.jobs.job import Job
from benchmark.launch.event_files import EventFiles, place_of
from benchmark.launch.queue import Event
from benchmark.store.store import HISTORY, Store
from tests.conftest import run_here
from tests.launch.test_progress import jobs

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason='pip install -e ".[tensorboard]"'
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of packages that tensorboard imports


@pytest.fixture
def files(tmp_path: Path) -> Iterator[EventFiles]:
    made = EventFiles(Store(tmp_path))
    yield made
    made.close()


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {name: [(each.step, each.value) for each in events.Scalars(name)] for name in events.Tags()["scalars"]}


def epoch(job: Job, done: int) -> Event:
    return Event("epoch", job, {"epoch": done - 1.0, "loss": 1 / done, "epochs_done": done, "seconds": 1.0})


@needs_tensorboard
def test_a_run_writes_what_its_histories_have(tiny: Path, tmp_path: Path) -> None:
    """Also of jobs that share a warm-up, whose first epochs another job has trained. No id and no number changes."""
    words = ("--datasets", tiny, "--methods", "sat", "sat+em", "--seeds", 1, "--set", "epochs=3")
    plain, with_files = tmp_path / "plain", tmp_path / "with"
    for results, more in ((plain, ()), (with_files, ("--tensorboard",))):
        done = run_here(*words, *more, "--results", results)
        assert done.returncode == 0, done.stderr
    histories = sorted(path.relative_to(plain) for path in plain.rglob(HISTORY))
    assert len(histories) == 2
    assert not (plain / "tensorboard").exists()
    assert len([*(with_files / "tensorboard").rglob("*tfevents*")]) == 3, "two jobs and a warm-up"
    for history in histories:
        assert (with_files / history).read_bytes() == (plain / history).read_bytes()
        _, _, job, seed, _ = history.parts
        (folder,) = (with_files / "tensorboard" / "tiny").glob(f"*/{job}/{seed}")
        rows = list(csv.DictReader((plain / history).read_text().splitlines()))
        assert len(rows) == 3
        shown = read(folder)
        assert {*shown} == {*rows[0]} - {"epoch"}
        for name, values in shown.items():
            wanted = {round(float(row["epoch"])) + 1: float(row[name]) for row in rows if row[name]}
            assert dict(values) == pytest.approx(wanted, rel=1e-6), name


@needs_tensorboard
def test_a_job_that_was_stopped_has_each_epoch_once(files: EventFiles, tmp_path: Path) -> None:
    job = jobs()[1]
    for done in (1, 2, 3):
        files.note(epoch(job, done))
    files.note(Event("stopped", job))
    for done in (3, 4):
        files.note(epoch(job, done))
    files.note(Event("retried", job, {"reason": "its process died"}))
    assert read(tmp_path / place_of(job))["loss"] == [(done, pytest.approx(1 / done)) for done in (1, 2, 3, 4)]
    rows = [{"epoch": float(number), "loss": 1 / (number + 1)} for number in range(5)]
    Store(tmp_path).write_history(job.folder, rows)
    files.note(epoch(job, 5))
    files.note(Event("done", job))
    assert [step for step, _ in read(tmp_path / place_of(job))["loss"]] == [1, 2, 3, 4, 5]
    assert len([*(tmp_path / place_of(job)).iterdir()]) == 1, "one file has them all"


@needs_tensorboard
def test_a_disk_that_refuses_costs_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tensorboard").write_text("a file")
    files = EventFiles(Store(tmp_path))
    for done in (1, 2):
        files.note(epoch(jobs()[0], done))
    assert capsys.readouterr().err.count("no more event files for TensorBoard") == 1


def test_without_the_package_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.launch.event_files.importlib.util.find_spec", lambda name: None)
    said = run_here("--datasets", "digits", "--methods", "sr", "--tensorboard", "--results", tmp_path / "results")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == (
        "error: --tensorboard needs another package: pip install tensorboard; or leave out --tensorboard\n"
    )
    assert not (tmp_path / "results").exists()
