"""Device-hours of a plan: from the step times of records, and from steps measured now."""

import json
import re
from pathlib import Path

import pytest
import torch

from benchmark.base.units import device_hours, text_from_seconds, two_digits
from benchmark.config.load import load_task
from benchmark.config.task import TaskConfig
from benchmark.data.images import Facts
from benchmark.data.sources import describe
from benchmark.forecast.long_plans import long_plan_warnings
from benchmark.forecast.step_times import (
    Epochs,
    StepTimes,
    epochs_of,
    kinds_of,
    known_step_times,
    passes_of,
    rough_step_times,
    seconds_of,
    timed_settings,
)
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_warmups
from benchmark.jobs.suite import Suite
from benchmark.store.manifest import TableSettings
from benchmark.store.store import RECORD, Store
from methods import Registry
from tests.conftest import data_hash, pretend_gpus, run_here

TASK = load_task("cifar100")
FACTS = describe(TASK.data)
STEPS = 782
"""50,000 images in batches of 64."""


def jobs(*labels: str) -> list[Job]:
    return [entry.jobs[0] for entry in plan(TASK, labels, [0], Registry(), "hash")]


def hours(jobs: list[Job], known: StepTimes) -> float | None:
    nothing = Store(Path("nowhere"))
    each = [seconds_of(job, epochs_of(job, nothing), known, FACTS) for job in jobs]
    return None if None in each else sum(each) / 3600


def paces(**seconds: float) -> StepTimes:
    found = StepTimes()
    found.add("sr-job", "cross_entropy", {"own": seconds["sr"]})
    found.add("ccl-job", "ccl_sc", {"own": seconds["ccl"], "warmup": seconds["sr"]})
    return found


def test_hours_by_hand() -> None:
    """300 epochs of SR; 150 of warm-up and 150 of CCL-SC; shared, the warm-up is SR's."""
    known = paces(sr=0.01, ccl=0.03)
    alone = jobs("CCL-SC", "SR")
    assert hours(alone, known) == pytest.approx(STEPS * (300 * 0.01 + 150 * 0.01 + 150 * 0.03) / 3600)
    shared = share_warmups(alone, Store(Path("nowhere")))
    assert hours(shared, known) == pytest.approx(STEPS * (300 * 0.01 + 150 * 0.03) / 3600)


def test_a_method_without_a_record_counts_at_the_median_of_the_others() -> None:
    known = paces(sr=0.01, ccl=0.03)
    assert hours(jobs("Focal"), known) == pytest.approx(STEPS * 300 * 0.02 / 3600)
    assert hours(jobs("Focal"), StepTimes()) is None


def test_what_is_saved_is_not_trained_again_and_what_is_no_step_counts_too() -> None:
    """CCL-SC warms up for 150 of 300 epochs."""
    (job,), nothing = jobs("CCL-SC"), Store(Path("nowhere"))
    assert epochs_of(job, nothing) == Epochs(150, 150)
    assert epochs_of(job, nothing, saved=100) == Epochs(50, 150)
    assert epochs_of(job, nothing, saved=200) == Epochs(0, 100)
    known = paces(sr=0.01, ccl=0.03)
    known.add("ccl-job", "ccl_sc", {"later": 7.0})
    known.add("sr-job", "cross_entropy", {"first": 12.0})
    assert seconds_of(job, Epochs(0, 100), known, FACTS) == pytest.approx(7 + 100 * STEPS * 0.03)
    assert known.start == 5.0


def test_records_of_other_devices_and_networks_do_not_count(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "sat", "--seeds", 1, "--results", tmp_path)
    assert run_here(*common, "-q").returncode == 0
    planned = json.loads(run_here(*common, "--seeds", 2, "--dry-run", "--json").stdout)
    assert 0 < planned["device_hours"] < 0.1
    assert planned["tasks"][0]["device_hours_naive"] > planned["tasks"][0]["device_hours"]
    (path,) = (tmp_path / "tiny" / "cross_entropy").glob(f"*/seed-0/{RECORD}")
    record = json.loads(path.read_text())
    assert record["provenance"]["step_seconds"]["device"] == "cpu"
    assert "peak_bytes" not in record["provenance"], "what a process holds is its history, not the method's"
    assert set(record["provenance"]["step_seconds"]) == {"device", "own"}
    (sat,) = (tmp_path / "tiny" / "self_adaptive").glob(f"*/seed-0/{RECORD}")
    assert set(json.loads(sat.read_text())["provenance"]["step_seconds"]) == {"device", "own"}, "its warm-up was shared"
    wider = [*common, "--set", "network.widths=4,4", "--dry-run", "--json"]
    assert json.loads(run_here(*wider).stdout)["device_hours"] is None
    entry = plan(load_task(str(tiny)), ["SR"], [0], Registry(), "hash")[0].jobs
    assert not known_step_times(entry, Store(tmp_path), "cuda").seconds


def test_a_probe_measures_without_any_record(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "ccl-sc", "--seeds", 1, "--results", tmp_path, "--dry-run")
    assert "device-hours unknown" in run_here(*common).stdout
    probed = run_here(*common, "--probe")
    assert "device-minutes" in probed.stdout
    assert not tmp_path.joinpath("tiny").exists(), "a probe leaves nothing"
    lines = probed.stderr.splitlines()
    assert [line.startswith("measuring") for line in lines] == [True, False, True, False], "each as it comes"
    assert re.fullmatch(r"tiny CCL-SC: [\d.,]+ ms a step, [\d.,]+ \w+ an epoch", lines[1])


def test_a_probe_measures_each_kind_of_step_once() -> None:
    """Labels and coverages of a file share it, and so does a warm-up with what it is."""
    entries = plan(TASK, ["SAT", "SAT+EM", "SelectiveNet", "CCL-SC", "CCL-SC2"], [0, 1], Registry(), "hash")
    planned = [job for entry in entries for job in entry.jobs]
    assert len(planned) == 2 * (4 + len(TASK.model_coverages))
    kinds = {job.method for job in kinds_of(planned)}
    assert kinds == {"cross_entropy", "self_adaptive", "selective_net", "ccl_sc"}
    assert len(kinds_of(planned)) == 4
    assert not kinds_of([entry.jobs[0] for entry in plan(TASK, ["MC-dropout"], [0], Registry(), "hash")])


def test_an_interrupted_probe_keeps_what_it_has(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "focal", "mmce", "--seeds", 1, "--results", tmp_path, "--dry-run")
    times: list[float] = []

    def two_only(*_: object) -> float:
        if len(times) == 2:
            raise KeyboardInterrupt
        times.append(36.0)
        return times[-1]

    monkeypatch.setattr("benchmark.forecast.step_times.step_time", two_only)
    probed = run_here(*common, "--probe")
    assert probed.returncode == 130
    assert "interrupted: 2 of 3 kinds of step are measured; the others get the median" in probed.stderr
    assert "12 epochs to train; about 0.6 device-hours" in probed.stdout, "three jobs of 4 × 5 steps"
    assert "0.60" not in probed.stdout


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No step takes less than two seconds here; which tasks are asked for."""
    asked: list[str] = []

    def rough(task: TaskConfig, facts: Facts, device: torch.device) -> StepTimes:
        asked.append(task.name)
        return StepTimes({("", "own"): [2.0]})

    monkeypatch.setattr("benchmark.forecast.long_plans.rough_step_times", rough)
    return asked


def suite_of(task: TaskConfig) -> Suite:
    facts = describe(task.data)
    return Suite(task, plan(task, ["SR"], range(5), Registry(), "hash"), (100,), "SR", TableSettings(), "hash", facts)


def test_a_plan_of_days_is_said_with_what_to_use_instead(slow: list[str], tmp_path: Path) -> None:
    """5 × 300 × 782 steps of 2 seconds by two workers."""
    suites = [suite_of(TASK), suite_of(load_task("digits"))]
    (line,) = long_plan_warnings(suites, Store(tmp_path), ["cpu", "cpu"], share=True)
    assert slow == ["cifar100"], "a small task is not even looked at"
    assert line == (
        "cifar100: 5 jobs, 2 at a time, take about 14 days on this machine's CPU; --datasets cifar100-cpu (paper: "
        "--scale cpu) is a small version; no GPU was found here; on a machine with a GPU, --device auto uses it"
    )


def test_a_gpu_beside_the_cpu_is_named_and_one_without_records_is_left_alone(
    slow: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_gpus(monkeypatch, 1)
    (line,) = long_plan_warnings([suite_of(TASK)], Store(tmp_path), ["cpu"], share=True)
    assert line.endswith("is a small version; --device cuda is here, too")
    assert not list(long_plan_warnings([suite_of(TASK)], Store(tmp_path), ["cuda:0"], share=True))
    assert slow == ["cifar100"], "a GPU is not touched before its worker starts"


def test_a_rough_pace_takes_a_few_images() -> None:
    task = load_task("digits")
    (seconds,) = rough_step_times(task, describe(task.data), torch.device("cpu")).seconds["", "own"]
    assert 0 < seconds < 60


def test_days_and_hours_have_two_digits() -> None:
    assert [two_digits(value) for value in (0.2249, 3.456, 9.96, 13.37, 1497.2)] == ["0.22", "3.5", "10", "13", "1,500"]
    assert device_hours(1497.2) == "1,500 device-hours (62 days)"
    assert device_hours(30.04) == "30 device-hours"
    assert device_hours(0.0123) == "0.74 device-minutes"
    assert text_from_seconds(7.84 * 86400) == "7.8 days"


def test_steps_of_several_passes_are_forecast_from_plain_ones(tiny: Path) -> None:
    """What a plain run took says what one with SAM, or with RegMixup too, will take; and the other way round."""
    task = load_task(str(tiny))
    sharp = load_task(str(tiny), ["optimizer.sharpness=sam", "mixing.name=regmixup", "network.classifier=cosine"])
    (plain,) = plan(task, ["SR"], [0], Registry(), data_hash(task))
    (mixed,) = plan(sharp, ["SR"], [0], Registry(), data_hash(sharp))
    times, (job,), (other,) = StepTimes(), plain.jobs, mixed.jobs
    assert timed_settings(job.identity()) == timed_settings(other.identity())
    assert (passes_of(job.identity()), passes_of(other.identity())) == (1, 4)
    times.add(job.id, job.method, {"own": 0.1}, job.identity())
    assert times.of(other, "own") == pytest.approx(0.4)
    times = StepTimes()
    times.add(other.id, other.method, {"own": 0.4, "later": 2.0}, other.identity())
    assert times.of(job, "own") == pytest.approx(0.1)
    assert times.outside(job) == 2.0


def test_the_steps_of_a_second_stage_stand_for_themselves(tiny: Path) -> None:
    task = load_task(str(tiny), ["optimizer.sharpness=sam"])
    entries = plan(task, ["SR", "ConfidNet"], [0], Registry(), data_hash(task))
    plain, stage = (entry.jobs[0] for entry in entries)
    times = StepTimes()
    times.add(stage.id, stage.method, {"own": 1.0}, stage.identity())
    assert times.of(stage, "own") == 1.0
    assert times.of(plain, "own") is None
