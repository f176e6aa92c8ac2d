"""The journal of a command: what is written, what is read of it, and what becomes of it when the command ends."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmark.base.files import HOST, remove_leftovers
from benchmark.live import journal as module
from benchmark.live.journal import Commands, Follower, JobFacts, Journal, journal

JOBS = [JobFacts("made", "M0", seed, f"made/m0/id/seed-{seed}", 10) for seed in range(3)]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with closing(Commands(tmp_path)) as found:
        yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    yield now


def epoch(done: int, **row: float) -> dict[str, Any]:
    return {"epoch": done - 1.0, "loss": 1 / done, **row, "epochs_done": done, "seconds": 2.0}


def test_what_is_noted_is_read(tmp_path: Path, clock: list[float], commands: Commands) -> None:
    assert commands.read() == []
    with journal(tmp_path, JOBS, done_before=4) as notes:
        notes.note(JOBS[1].folder, "started", {}, None)
        notes.note(JOBS[1].folder, "epoch", epoch(1, accuracy=0.5), None)
        clock[0] += 10
        notes.note(JOBS[1].folder, "epoch", epoch(2, accuracy=0.75), 30.0)
        clock[0] += 10
        notes.note(JOBS[1].folder, "step", {"epoch": 2, "done": 5, "of": 20, "rate": 1.0}, 25.0)
        (progress,) = commands.read()
        first, second, _ = progress.jobs
        assert (progress.done_before, progress.began, progress.end, progress.over) == (4, 1000.0, 1045.0, False)
        assert (first.state, second.state, second.epochs_done, second.within) == ("waiting", "running", 2, 0.25)
        assert second.rows == [{"epoch": 0, "loss": 1, "accuracy": 0.5}, {"epoch": 1, "loss": 0.5, "accuracy": 0.75}]
        notes.note(JOBS[1].folder, "done", {}, 3.0)
        notes.note(JOBS[0].folder, "failed", {"reason": "no luck"}, 0.0)
    assert not [*tmp_path.iterdir()], "it is removed, and its end can still be read"
    (progress,) = commands.read()
    assert progress.over
    assert [(job.state, job.reason) for job in progress.jobs] == [("failed", "no luck"), ("done", ""), ("waiting", "")]


def test_a_resumed_job_trains_some_epochs_again(tmp_path: Path, commands: Commands) -> None:
    notes = Journal(tmp_path, JOBS, 0)
    for done in (1, 2, 3, 2, 3):
        notes.note(JOBS[0].folder, "epoch", epoch(done), None)
    (progress,) = commands.read()
    assert [row["epoch"] for row in progress.jobs[0].rows] == [0, 1, 2]
    notes.note(JOBS[0].folder, "retried", {"reason": "its process died"}, None)
    assert (commands.read()[0].jobs[0].state, progress.jobs[0].reason) == ("waiting", "its process died")
    notes.close()


def test_few_steps_are_noted(tmp_path: Path, clock: list[float]) -> None:
    notes = Journal(tmp_path, JOBS, 0)
    for tenth in range(100):
        clock[0] = 1000 + tenth / 10
        notes.note(JOBS[0].folder, "step", {"done": tenth, "of": 100}, None)
    assert 3 <= len(notes.path.read_text().splitlines()) - 1 <= 5, "one in three seconds"
    notes.close()


def test_a_torn_line_waits_for_its_rest(tmp_path: Path) -> None:
    notes = Journal(tmp_path, JOBS, 0)
    follower = Follower(notes.path)
    follower.read()
    line = json.dumps({"at": 1.0, "job": 0, "kind": "started", "left": None}) + "\n"
    for part, state in ((line[:20], "waiting"), (line[20:], "running")):
        with notes.path.open("a") as file:
            file.write(part)
        progress = follower.read()
        assert progress is not None
        assert progress.jobs[0].state == state
    notes.close()
    follower.close()


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "7",
        "{}",
        '{"jobs": 3}',
        '{"jobs": [{"task": "a"}]}',
        '{"at": 1, "kind": "started", "job": 9}',
        '{"at": "x", "kind": "epoch", "job": 0}',
        '{"at": 1, "kind": "epoch", "job": 0, "row": 5}',
        "\xff\x00",
    ],
)
def test_what_no_command_wrote_is_passed_over(tmp_path: Path, commands: Commands, text: str) -> None:
    path = tmp_path / f".running.{HOST}-{os.getpid()}.tmp"
    path.write_bytes(text.encode("latin-1") + b"\n")
    assert commands.read() == []
    commands.close()
    notes = Journal(tmp_path, JOBS, 0)
    with path.open("ab") as file:
        file.write(text.encode("latin-1") + b"\n")
    notes.note(JOBS[2].folder, "started", {}, None)
    assert commands.read()[0].jobs[2].state == "running"
    notes.close()


def test_a_command_that_was_killed_is_over_and_the_next_one_removes_its_journal(
    tmp_path: Path, commands: Commands
) -> None:
    notes = Journal(tmp_path, JOBS, 0)
    notes.note(JOBS[0].folder, "started", {}, 60.0)
    dead = notes.path.with_name(f".running.{HOST}-4194305.tmp")  # no process has such a number
    notes.path.rename(dead)
    (progress,) = commands.read()
    assert (progress.over, progress.end) == (True, None)
    remove_leftovers(tmp_path)
    assert not dead.exists()
    notes.close()


def test_one_that_runs_takes_the_place_of_one_that_has_ended(tmp_path: Path, commands: Commands) -> None:
    with journal(tmp_path, JOBS, 0):
        commands.read()
    assert [progress.over for progress in commands.read()] == [True]
    with journal(tmp_path, JOBS[:1], 0):
        assert [(progress.over, len(progress.jobs)) for progress in commands.read()] == [(False, 1)]


def test_where_nothing_can_be_written_the_run_goes_on(tmp_path: Path) -> None:
    with journal(tmp_path / "nowhere", JOBS, 0) as notes:
        notes.note(JOBS[0].folder, "started", {}, None)
        notes.note("a job of nobody", "started", {}, None)
    assert not (tmp_path / "nowhere").exists()
