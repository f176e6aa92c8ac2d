"""The ETA, the plain lines, and what a watcher does about failures."""

import pytest

from benchmark.jobs import Job
from benchmark.launch import Event, Stop
from benchmark.pace import Pace
from benchmark.planner import plan
from benchmark.progress import Watcher, duration
from benchmark.tasks import load_task
from methods import Registry


def jobs(max_steps: int = 0) -> list[Job]:
    task = load_task("digits", ["epochs=10", "method.DG.warmup_epochs=5"])
    return [entry.jobs[0] for entry in plan(task, ["DG", "SR"], [0], Registry(), "hash", max_steps)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One for all modules: they share `time`."""
    now = [0.0]
    monkeypatch.setattr("benchmark.progress.time.monotonic", lambda: now[0])
    return now


def test_eta_counts_all_epochs_to_go_over_all_workers(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Pace([dg, sr], workers=2)
    assert pace.seconds_left() is None
    pace.started(dg)
    pace.started(sr)
    clock[0] = 60
    pace.epoch(dg, 1)
    assert pace.seconds_left() == 10 * 60, "the longer of the two"
    assert Pace([dg, sr], tables=True).tables > 0
    pace.finished(sr)
    assert pace.seconds_left() == 9 * 60


def test_eta_follows_recent_epochs_and_the_step_within_one(clock: list[float]) -> None:
    (sr,) = [job for job in jobs() if job.label == "SR"]
    pace = Pace([sr])
    pace.started(sr)
    for epoch in range(1, 9):
        pace.epoch(sr, epoch, 10.0 if epoch < 5 else 30.0)
    before = pace.seconds_left() or 0
    assert 2 * 22 < before < 2 * 30, "the plain mean is 20"
    pace.within(sr, 8, 0.5)
    assert pace.seconds_left() == pytest.approx(before * 1.5 / 2)


def test_eta_of_a_first_epoch_comes_from_its_steps(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Pace([dg, sr])
    pace.started(sr)
    pace.within(sr, 0, 0.25, seconds=100.0)
    assert pace.seconds_left() == pytest.approx((9.75 + 10) * 100)


def test_eta_counts_what_a_job_does_beside_its_epochs_but_not_the_start_of_its_worker(clock: list[float]) -> None:
    one, two = (entry.jobs[0] for entry in plan(load_task("digits"), ["SR", "Focal"], [0], Registry(), "hash"))
    pace = Pace([one, two])
    pace.started(one)
    for epoch in range(1, 21):
        clock[0] = 100 + epoch  # the worker has started for 100 s
        pace.epoch(one, epoch, 1.0)
    clock[0] = 125
    pace.finished(one)
    assert pace.seconds_left() == pytest.approx(20 * 1 + 5)


def test_eta_waits_for_what_a_job_needs(clock: list[float]) -> None:
    """Two workers do not help where one job waits for the other."""
    (entry,) = plan(load_task("digits"), ["MC-dropout"], [0], Registry(), "hash")
    after, before = entry.jobs[0], entry.jobs[0].needs[0]
    pace = Pace([before, after], workers=2)
    pace.started(before)
    clock[0] = 1
    pace.epoch(before, 1)
    pace.beside.add((after.task.name, after.method), 7.0)
    assert pace.seconds_left() == pytest.approx(19 + 7 + 7, abs=1e-6)


def test_eta_of_a_resumed_job_counts_only_what_it_trained(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Pace([dg, sr])
    pace.started(dg)
    clock[0] = 10
    pace.epoch(dg, 8)
    assert pace.seconds_left() == (2 + 10) * 10


def test_eta_of_a_trial_leaps_with_it(clock: list[float]) -> None:
    dg, sr = jobs(max_steps=2)
    pace = Pace([dg, sr])
    pace.started(dg)
    clock[0] = 30
    pace.epoch(dg, 5)
    assert pace.seconds_left() == 30 + 60


def test_a_slow_epoch_gives_signs_of_life(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no live line: step, rate and rest of the epoch, when nothing else was said for ten seconds."""
    _, sr = jobs()
    watcher = Watcher([sr])
    watcher(Event("started", sr))
    for second in range(1, 31):
        clock[0] = float(second)
        watcher(Event("step", sr, {"epoch": 1, "done": second, "of": 100, "rate": 0.5}))
    clock[0] = 5000.0
    watcher(Event("step", sr, {"epoch": None, "done": 3, "of": 4, "rate": 2.0}))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4, "not one every ten seconds for days"
    assert lines[0] == "digits SR seed 0 epoch 2/10 step 10/100, 2.0 s each, 3:00 to go in it, ETA 29:40"
    assert lines[3].startswith("digits SR seed 0 predicting, batch 3/4, 2.0/s, 0:00 to go in it")
    watcher(Event("step", sr, {"epoch": None, "done": 3, "of": 4, "rate": 0.0}))
    quiet = Watcher([sr], quiet=True)
    quiet(Event("started", sr))
    clock[0] = 9000.0
    quiet(Event("step", sr, {"epoch": 1, "done": 1, "of": 100, "rate": 0.5}))
    assert not capsys.readouterr().err


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
