"""The simulated schedule: against hand-made cases, a simulation tick by tick, all orders, and the real line of jobs."""

import json
from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.config.load import load_task
from benchmark.data.sources import describe
from benchmark.figures.style import files_of, house_style
from benchmark.forecast.gantt import Chart, lanes_of
from benchmark.forecast.outlook import Outlook, look_ahead, simulate_all, works_of
from benchmark.forecast.step_times import StepTimes
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.suite import Suite, in_line
from benchmark.launch.placement import Device, Schedule, Work, simulate
from benchmark.launch.queue import Event, Waiting
from benchmark.store.manifest import TableSettings
from benchmark.store.store import Store
from methods import Registry
from tests.conftest import run_here

TWO = (Device("a"), Device("b"))


def starts(schedule: Schedule) -> dict[str, tuple[float, int]]:
    return {each.work.name: (each.start, each.device) for each in schedule.placed}


def test_by_hand() -> None:
    """b and c wait for the middle of a; d for the end of b; two devices."""
    works = [Work("b", 3, {"a": 0.5}), Work("c", 1, {"a": 0.5}), Work("d", 2, {"b": 1}), Work("a", 4)]
    found = simulate(works, TWO)
    assert starts(found) == {"a": (0, 0), "b": (2, 1), "c": (4, 0), "d": (5, 0)}
    assert found.makespan == 7
    assert found.busy_seconds == 10
    assert found.utilisation == 10 / 14
    assert found.critical_path.names == ("a", "b", "d")
    assert found.lower_bound == found.critical_path.seconds == 7


def test_the_first_in_line_goes_first_and_a_later_one_fills_the_gap() -> None:
    works = [Work("a", 2, share=0.5), Work("b", 2, share=0.75), Work("c", 3, share=0.5), Work("d", 1, share=0.25)]
    assert starts(simulate(works, TWO[:1])) == {"a": (0, 0), "c": (0, 0), "d": (2, 0), "b": (3, 0)}


def test_ten_tenths_are_a_device() -> None:
    assert simulate([Work(str(index), 1, share=0.1) for index in range(20)], TWO).makespan == 1


def test_a_slow_device_takes_longer_and_costs_what_it_costs() -> None:
    mixed = (Device("fast", price=2), Device("slow", 0.5, price=1))
    found = simulate([Work("a", 3600), Work("b", 3600)], mixed, begin=1800)
    assert [(each.start, each.end) for each in found.placed] == [(1800, 5400), (1800, 9000)]
    assert found.cost == 2.5 * 3
    assert found.lower_bound == 1800 + 7200 / 1.5
    assert simulate([Work("a", 1)], TWO).cost is None


@pytest.mark.parametrize("work", [Work("a", 1, {"gone": 1}), Work("a", 1, {"a": 1}), Work("a", 1, share=1.5)])
def test_what_can_never_begin_is_said(work: Work) -> None:
    with pytest.raises(ValueError, match="can never begin"):
        simulate([work], TWO)


@st.composite
def graphs(draw: st.DrawFn, most: int = 9, shortest: int = 0, shares: Sequence[float] = (1.0,)) -> list[Work]:
    """Works of whole even seconds that wait for the end or the middle of others, in any order of the line."""
    works: list[Work] = []
    for index in range(draw(st.integers(1, most))):
        some = st.dictionaries(st.sampled_from(works).map(lambda w: w.name), st.sampled_from([0.5, 1]), max_size=2)
        needs = draw(some) if works else {}
        works.append(Work(f"w{index}", 2 * draw(st.integers(shortest, 5)), needs, draw(st.sampled_from(shares))))
    return draw(st.permutations(works))


def tick_by_tick(works: Sequence[Work], devices: int) -> dict[str, int]:
    """The same rules, read off a clock: every second, the line is gone through once."""
    length, begun, now = {work.name: work.seconds for work in works}, dict[str, int](), 0
    while len(begun) < len(works):
        for work in works:
            running = sum(start <= now < start + length[name] for name, start in begun.items())
            ready = all(need in begun and now - begun[need] >= part * length[need] for need, part in work.needs.items())
            if work.name not in begun and ready and running < devices:
                begun[work.name] = now
        now += 1
    return begun


@given(graphs(shortest=1), st.integers(1, 3))
def test_as_tick_by_tick(works: list[Work], count: int) -> None:
    found = simulate(works, [Device("d")] * count)
    assert {name: start for name, (start, _) in starts(found).items()} == tick_by_tick(works, count)


@given(graphs(shares=(1.0, 0.5, 0.3, 0.25)), st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=1, max_size=3))
def test_what_every_schedule_keeps(works: list[Work], speeds: list[float]) -> None:
    found = simulate(works, [Device("d", speed) for speed in speeds], begin=1.0)
    placed = {each.work.name: each for each in found.placed}
    assert placed.keys() == {work.name for work in works}
    assert found.makespan >= found.lower_bound - 1e-9
    assert 0 <= found.utilisation <= 1 + 1e-9
    for each in found.placed:
        assert each.end - each.start == pytest.approx(each.work.seconds / speeds[each.device])
        assert all(placed[need].reaches(part) <= each.start for need, part in each.work.needs.items())
        together = [o for o in found.placed if o.device == each.device and o.start <= each.start < o.end]
        assert sum(other.work.share for other in together) <= 1 + 1e-6


@given(graphs(), st.integers(1, 4))
def test_the_bound_of_list_scheduling(works: list[Work], count: int) -> None:
    """Graham 1966: never longer than 2 − 1/m times the least, on equal devices."""
    found = simulate(works, [Device("d")] * count)
    assert found.makespan <= (2 - 1 / count) * found.lower_bound + 1e-9


@settings(max_examples=40)
@given(graphs(most=5), st.integers(1, 3))
def test_no_order_is_faster_than_the_lower_bound(works: list[Work], count: int) -> None:
    devices = [Device("d")] * count
    best = min(simulate(order, devices).makespan for order in permutations(works))
    assert simulate(works, devices).lower_bound <= best <= simulate(works, devices).makespan


LABELS = ["CCL-SC", "SAT", "Deep ensemble", "MC-dropout", "Focal", "SR"]


def outlook(labels: Sequence[str] = LABELS, **paces: float) -> Outlook:
    return of_task("cifar100", labels, **paces)


def of_task(name: str, labels: Sequence[str] = LABELS, **paces: float) -> Outlook:
    """With three seeds, where nothing has been done; by default a step takes a second."""
    task = load_task(name)
    entries = plan(task, labels, range(3), Registry(), "hash")
    suite = Suite(task, entries, task.coverages, task.reference, TableSettings(), "hash", describe(task.data))
    known = StepTimes({("", phase): [seconds] for phase, seconds in (paces or {"own": 1.0}).items()})
    return look_ahead(suite, Store(Path("nowhere")), lambda jobs: known, share=True)


def as_workers_take_them(jobs: Sequence[Job], works: Sequence[Work], workers: int) -> dict[str, float]:
    """When each job begins where the line of a real run is asked, and told of every epoch."""
    seconds = {work.name: work.seconds for work in works}
    waiting, begun, now, idle = Waiting(list(jobs), lambda event: None), dict[str, float](), 0.0, workers
    news: dict[float, list[Event]] = {}
    while waiting.jobs or news:
        while idle and (job := waiting.take()) is not None:
            idle, begun[str(job.folder)] = idle - 1, now
            length = seconds[str(job.folder)]
            for epoch in range(1, job.epochs):
                event = Event("epoch", job, {"epochs_done": job.last_epoch - job.epochs + epoch})
                news.setdefault(now + epoch * length / job.epochs, []).append(event)
            news.setdefault(now + length, []).append(Event("done", job))
        now = min(news)
        for event in news.pop(now):
            waiting.handle(event)
            idle += event.kind == "done"
    return begun


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("labels", [LABELS, ["CCL-SC", "SAT", "DG"]], ids=["SR is the trunk", "a trunk of its own"])
def test_the_order_is_that_of_a_real_run(workers: int, labels: list[str]) -> None:
    found = outlook(labels, own=1.0)
    works = works_of(found)
    assert any(0 < part < 1 for work in works for part in work.needs.values())
    simulated = starts(simulate(works, [Device("d")] * workers))
    real = as_workers_take_them(found.to_run, works, workers)
    assert {name: start for name, (start, _) in simulated.items()} == pytest.approx(real)


def test_every_task_gets_its_first_seed_before_any_gets_its_second() -> None:
    """And the members of an ensemble, whatever their own seeds, with the ensemble."""
    jobs = [job for name in ("cifar100", "cifar10") for job in of_task(name).to_run]
    line = in_line(jobs)
    assert [job.split_seed for job in line] == sorted(job.split_seed for job in jobs)
    assert [job.task.name for job in line if job.label == "Deep ensemble"] == ["cifar100", "cifar10"] * 3
    forecast = simulate_all([of_task("cifar100"), of_task("cifar10")], [Device("d")])
    begun = [forecast.jobs[each.work.name] for each in forecast.schedule.placed]
    assert [job.split_seed for job in begun] == sorted(job.split_seed for job in jobs)


def described(*arguments: object) -> dict[str, Any]:
    result = run_here(*arguments, "--dry-run", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_the_plan_of_a_cluster_in_words(tiny: Path, tmp_path: Path) -> None:
    """Two trunks of 2 of 4 epochs of 5 steps, of 10 s each; on one device all jobs stand in a row."""
    common = ("--datasets", tiny, "--methods", "sr", "focal", "--seeds", 2, "--results", tmp_path / "r", "--dry-run")
    text = run_here(*common, "--cluster", "1xA100", "--step-seconds", "tiny=10", "--price", "A100=1.8").stdout
    assert "on 1xA100: 13 minutes from beginning to end (no order takes less than 13 minutes)" in text
    assert "devices busy 100% of 0.22 device-hours; cost 0.40 (price per hour: A100 1.8)" in text
    assert "critical path, 3.3 minutes: tiny SR seed 0" in text or "tiny Focal seed 0" in text
    assert "not counted: start-up and evaluation (tiny: only the step time is known)" in text
    for suffix in ("png", "pdf"):
        assert str(tmp_path / "r" / "figures" / f"schedule.{suffix}") in text


def test_a_task_without_step_times_is_named_and_the_others_are_scheduled(tiny: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(tiny.read_text())
    common = ("--datasets", tiny, other, "--methods", "sr", "--seeds", 1, "--results", tmp_path / "r", "--dry-run")
    text = run_here(*common, "--cluster", "2xA100", "--step-seconds", "tiny=10").stdout
    assert "not scheduled: other: no step time is known; add --probe, or --step-seconds other=SECONDS" in text
    assert "critical path, 3.3 minutes: tiny SR seed 0" in text
    nothing = run_here(*common, "--cluster", "2xA100", "--results", tmp_path / "empty").stdout
    assert "--step-seconds tiny=SECONDS other=SECONDS" in nothing
    assert not (tmp_path / "empty" / "figures").exists()


def test_a_share_of_a_device_and_several_kinds(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "--seeds", 4, "--results", tmp_path, "--step-seconds", "tiny=10")
    whole = described(*common, "--cluster", "1xA100")["schedule"]["makespan_seconds"]
    for shared in (["--set", "resources.gpus=0.25"], ["--jobs-per-device", 4]):
        assert described(*common, "--cluster", "1xA100", *shared)["schedule"]["makespan_seconds"] == whole / 4
    mixed = described(*common, "--cluster", "2xA100,2xL4", "--speed", "L4=0.5")["schedule"]
    assert mixed["makespan_seconds"] == whole / 2
    assert [job["device"] for job in mixed["jobs"]] == [0, 1, 2, 3]


def test_what_is_done_costs_nothing_and_what_is_begun_the_rest(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "focal", "--seeds", 1, "--results", tmp_path)
    asked = (*common, "--cluster", "1xcpu", "--step-seconds", "tiny=10")
    full = described(*asked)
    assert run_here(*common, "--methods", "sr", "--keep-weights", "-q").returncode == 0
    assert described(*asked)["schedule"]["makespan_seconds"] == full["schedule"]["makespan_seconds"] / 2
    (record,) = tmp_path.glob("tiny/cross_entropy/*/seed-0/record.json")
    record.unlink()
    begun = described(*asked)
    assert begun["schedule"]["makespan_seconds"] == full["schedule"]["makespan_seconds"] / 2, "all epochs are saved"
    assert (full["epochs"], begun["epochs"]) == (8, 4)
    assert run_here(*common, "-q").returncode == 0
    assert "nothing to schedule: all jobs are done" in run_here(*asked, "--dry-run").stdout


def test_a_record_knows_the_time_beside_the_steps(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "deep-ensemble", "--results", tmp_path, "--seeds")
    assert run_here(*common, 1, "-q").returncode == 0
    records = list(Store(tmp_path).records("tiny"))
    beside = [next(iter({"first", "later"} & record.provenance.outside_seconds.seconds.keys())) for record in records]
    assert beside.count("first") <= 1, "a process has one first job"
    found = described(*common, 2, "--cluster", "2xcpu")["schedule"]
    assert found["steps_only"] == []
    ensemble = next(job for job in found["jobs"] if job["job"] == "tiny Deep ensemble seed 1")
    assert 0 < ensemble["end"] - ensemble["start"] < 1
    assert ensemble["start"] == max(job["end"] for job in found["jobs"] if job is not ensemble)


def test_the_picture_is_the_same_to_the_byte(tmp_path: Path) -> None:
    forecast = simulate_all([outlook()], [Device("A100")] * 3 + [Device("L4", 0.4)] * 2, most_per_device=2)
    pictures = []
    for _ in range(2):
        with house_style():
            pictures.append(files_of(Chart(forecast).draw()))
    assert pictures[0] == pictures[1]


def test_bars_of_a_lane_never_overlap() -> None:
    schedule = simulate_all([outlook()], [Device("A100")] * 3, most_per_device=2).schedule
    lanes = lanes_of(schedule.placed)
    assert len(lanes) == 6
    assert sum(map(len, lanes)) == len(schedule.placed)
    for lane in lanes:
        assert len({each.device for each in lane}) == 1
        assert all(one.end <= other.start for one, other in pairwise(lane))


def test_the_paper_on_a_cluster(tmp_path: Path) -> None:
    times = [f"{name}=0.1" for name in ("cifar10", "cifar100", "celeba")]
    common = (
        "paper",
        "all",
        "--seeds",
        1,
        "--results",
        tmp_path,
        "--data-dir",
        tmp_path / "none",
        "--cluster",
        "8xA100",
    )
    found = described(*common, "--step-seconds", *times)["schedule"]
    assert found["unknown"] == ["imagenet"]
    assert found["makespan_seconds"] >= found["lower_bound_seconds"] > 0
    assert found["device_hours"] == pytest.approx(8 * found["makespan_seconds"] / 3600)
    assert found["busy_hours"] == pytest.approx(found["utilisation"] * found["device_hours"])
