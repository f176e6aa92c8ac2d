"""The ETA, the plain lines, and what a watcher does about failures."""

import csv
import json
from pathlib import Path

import pytest

from benchmark.config.load import load_task
from benchmark.data.sources import describe
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_warmups
from benchmark.jobs.suite import Suite, in_line
from benchmark.launch.eta import Eta
from benchmark.launch.progress import COST_SHARE, Watcher, duration
from benchmark.launch.queue import Event, Stop
from benchmark.store.manifest import TableSettings
from benchmark.store.store import Store
from methods import Registry
from tests.speed.eta import LABELS, LOG, SEEDS, SETTINGS, TASK, WORKERS


def jobs(max_steps: int = 0) -> list[Job]:
    task = load_task("digits", ["epochs=10", "method.DG.warmup_epochs=5"])
    return [entry.jobs[0] for entry in plan(task, ["DG", "SR"], [0], Registry(), "hash", max_steps)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One for all modules: they share `time`."""
    now = [0.0]
    monkeypatch.setattr("benchmark.launch.progress.time.monotonic", lambda: now[0])
    return now


def test_eta_counts_all_epochs_to_go_over_all_workers(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Eta([dg, sr], workers=2)
    assert pace.seconds_left() is None
    pace.started(dg)
    pace.started(sr)
    clock[0] = 60
    pace.epoch(dg, 1)
    assert pace.seconds_left() == 10 * 60, "the longer of the two"
    assert Eta([dg, sr], tables=True).tables > 0
    pace.finished(sr)
    assert pace.seconds_left() == 9 * 60


def test_eta_follows_recent_epochs_and_the_step_within_one(clock: list[float]) -> None:
    (sr,) = [job for job in jobs() if job.label == "SR"]
    pace = Eta([sr])
    pace.started(sr)
    for epoch in range(1, 9):
        pace.epoch(sr, epoch, 10.0 if epoch < 5 else 30.0)
    before = pace.seconds_left() or 0
    assert 2 * 21 < before < 2 * 30, "the plain mean is 20"
    pace.within(sr, 8, 0.5)
    assert pace.seconds_left() == pytest.approx(before * 1.5 / 2)


def test_eta_of_a_first_epoch_comes_from_its_steps(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Eta([dg, sr])
    pace.started(sr)
    pace.within(sr, 0, 0.25, seconds=100.0)
    assert pace.seconds_left() == pytest.approx((9.75 + 10) * 100)


def test_eta_counts_what_a_job_does_beside_its_epochs_but_not_the_start_of_its_worker(clock: list[float]) -> None:
    one, two = (entry.jobs[0] for entry in plan(load_task("digits"), ["SR", "Focal"], [0], Registry(), "hash"))
    pace = Eta([one, two])
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
    pace = Eta([before, after], workers=2)
    pace.started(before)
    clock[0] = 1
    pace.epoch(before, 1)
    pace.outside.add((after.task.name, after.method), 7.0)
    assert pace.seconds_left() == pytest.approx(19 + 7 + 7, abs=1e-6)


def test_eta_of_a_resumed_job_counts_only_what_it_trained(clock: list[float]) -> None:
    dg, sr = jobs()
    pace = Eta([dg, sr])
    pace.started(dg)
    clock[0] = 10
    pace.epoch(dg, 8)
    assert pace.seconds_left() == (2 + 10) * 10


def test_eta_of_a_trial_leaps_with_it(clock: list[float]) -> None:
    dg, sr = jobs(max_steps=2)
    pace = Eta([dg, sr])
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
    assert lines[0] == "digits SR seed 0 epoch 2/10 step 10/100, 2.0 s each, 3:00 left in this epoch, ETA 29:40"
    assert lines[3].startswith("digits SR seed 0 predicting, batch 3/4, 2.0/s, 0:00 left in this split")
    watcher(Event("step", sr, {"epoch": None, "done": 3, "of": 4, "rate": 0.0}))
    quiet = Watcher([sr], quiet=True)
    quiet(Event("started", sr))
    clock[0] = 9000.0
    quiet(Event("step", sr, {"epoch": 1, "done": 1, "of": 100, "rate": 0.5}))
    assert not capsys.readouterr().err


def test_an_estimate_that_takes_long_is_made_less_often(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, spent = Watcher(jobs()), [0.0]

    def take_long() -> float:
        spent[0] += 0.1
        return 60.0

    monkeypatch.setattr("time.perf_counter", lambda: spent[0])
    monkeypatch.setattr(watcher.estimate, "seconds_left", take_long)
    assert watcher.eta() == "ETA 1:00"
    clock[0] += 0.09 / COST_SHARE
    assert watcher.eta() == "ETA 0:56"
    assert spent == [0.1], "not computed again"


def recorded() -> list[dict[str, str]]:
    with LOG.open(newline="") as file:
        return list(csv.DictReader(file))


def jobs_of_log() -> list[Job]:
    task = load_task(TASK, SETTINGS)
    entries = plan(task, LABELS, range(SEEDS), Registry(), "hash")
    suite = Suite(task, entries, (), LABELS[0], TableSettings(), "hash", describe(task.data))
    return share_warmups(in_line(suite.jobs()), Store(Path("nowhere")))


def test_eta_of_a_recorded_run(clock: list[float]) -> None:
    """Two workers on a machine with other work. One method trains nothing, takes long, and comes late.

    The mean of all epochs so far foretold half of what was left, and a seventh of it in the end.
    """
    rows, by_name = recorded(), {job.name: job for job in jobs_of_log()}
    watcher, end = Watcher(list(by_name.values()), workers=WORKERS, tables=True), float(rows[-1]["at"])
    ratios: list[tuple[float, float]] = []
    for row in rows[:-1]:
        clock[0] = float(row["at"])
        watcher(Event(row["kind"], by_name[row["job"]], json.loads(row["values"])))  # type: ignore[arg-type]
        left = watcher.estimate.seconds_left()
        if left is not None and end - clock[0] > 5:
            ratios.append((clock[0] / end, left / (end - clock[0])))
    assert len(ratios) > 150
    assert all(0.5 < ratio < 2.1 for _, ratio in ratios)
    assert all(ratio > 0.75 for at, ratio in ratios if at > 0.6), "every method has been seen by then"


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
    assert [duration(s) for s in (5, 65, 3605, 3.5 * 86400)] == ["0:05", "1:05", "1:00:05", "3.5 days"]
