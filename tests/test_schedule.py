"""The simulated schedule: against hand-made cases, a simulation tick by tick, all orders, and the real line of jobs."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.config import load_task
from benchmark.cost import Paces
from benchmark.forecast import Outlook, look_ahead, works_of
from benchmark.jobs import Job, Suite
from benchmark.launch import Event, Waiting
from benchmark.planner import plan
from benchmark.schedule import Device, Schedule, Work, simulate
from benchmark.sources import describe
from benchmark.store import Store
from methods import Registry

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
    """Of CIFAR-100 with three seeds, where nothing has been done; by default a step takes a second."""
    task = load_task("cifar100")
    entries = plan(task, labels, range(3), Registry(), "hash")
    suite = Suite(task, entries, task.coverages, task.reference, {}, "hash", describe(task.data))
    known = Paces({("", phase): [seconds] for phase, seconds in (paces or {"own": 1.0}).items()})
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
            waiting.hear(event)
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
