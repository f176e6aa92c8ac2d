"""The ETA, the plain lines, and what a watcher does about failures."""

import pytest

from benchmark.jobs import Job
from benchmark.launch import Event, Stop
from benchmark.planner import plan
from benchmark.progress import Pace, Watcher, duration
from benchmark.tasks import load_task
from methods import Registry


def jobs(max_steps: int = 0) -> list[Job]:
    task = load_task("digits", ["epochs=10", "method.DG.warmup_epochs=5"])
    return [entry.jobs[0] for entry in plan(task, ["DG", "SR"], [0], Registry(), "hash", max_steps)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("benchmark.progress.time.monotonic", lambda: now[0])
    return now


def test_eta_counts_all_epochs_to_go_over_all_workers(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Pace([dg, sr])
    assert pace.eta() == "not known yet"
    pace.started(dg)
    pace.started(sr)
    clock[0] = 60
    pace.epoch(dg, 1)
    assert pace.eta() == duration((9 + 10) * 60 / 2)
    pace.finished(dg)
    assert pace.eta() == duration(10 * 60 / 2)


def test_eta_of_a_resumed_job_counts_only_what_it_trained(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Pace([dg, sr])
    pace.started(dg)
    clock[0] = 10
    pace.epoch(dg, 8)
    assert pace.eta() == duration((2 + 10) * 10)


def test_eta_of_a_trial_leaps_with_it(clock: list[float]) -> None:
    dg, sr = jobs(max_steps=2)
    pace = Pace([dg, sr])
    pace.started(dg)
    clock[0] = 30
    pace.epoch(dg, 5)
    assert pace.eta() == duration(30 + 60)


def test_plain_lines(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    dg, sr = jobs()
    watcher = Watcher([dg, sr], verbose=True)
    watcher(Event("started", dg))
    watcher(Event("epoch", dg, {"epochs_done": 1, "loss": 2.5, "accuracy": 0.25}))
    watcher(Event("done", dg))
    watcher(Event("failed", sr, {"reason": "no luck"}))
    watcher.close()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "digits DG seed 0 epoch 1/10 loss 2.500 acc 25.0%"
    assert lines[1].startswith("[1/2] digits DG seed 0: done, ETA")
    assert lines[2] == "[2/2] digits SR seed 0: FAILED: no luck"
    assert watcher.failures == [(sr, "no luck")]


def test_quiet_prints_failures_only_and_fail_fast_stops(capsys: pytest.CaptureFixture[str]) -> None:
    dg, sr = jobs()
    watcher = Watcher([dg, sr], quiet=True, fail_fast=True)
    watcher(Event("done", dg))
    with pytest.raises(Stop):
        watcher(Event("failed", sr, {"reason": "no luck"}))
    assert capsys.readouterr().err.count("\n") == 1


def test_durations() -> None:
    assert [duration(s) for s in (5, 65, 3605)] == ["0:05", "1:05", "1:00:05"]
