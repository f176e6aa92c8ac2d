"""Device-hours of a plan: from the step times of records, and from steps measured now."""

import json
from pathlib import Path

import pytest

from benchmark.cost import Epochs, Paces, epochs_of, known_paces, seconds_of
from benchmark.jobs import Job
from benchmark.planner import plan
from benchmark.sources import describe
from benchmark.store import RECORD, Store
from benchmark.tasks import load_task
from benchmark.trunks import share_warmups
from methods import Registry
from tests.conftest import run_here

TASK = load_task("cifar100")
FACTS = describe(TASK.data)
STEPS = 782
"""50,000 images in batches of 64."""


def jobs(*labels: str) -> list[Job]:
    return [entry.jobs[0] for entry in plan(TASK, labels, [0], Registry(), "hash")]


def hours(jobs: list[Job], known: Paces) -> float | None:
    nothing = Store(Path("nowhere"))
    each = [seconds_of(job, epochs_of(job, nothing), known, FACTS) for job in jobs]
    return None if None in each else sum(each) / 3600


def paces(**seconds: float) -> Paces:
    found = Paces()
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
    assert hours(jobs("Focal"), Paces()) is None


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
    assert not known_paces(entry, Store(tmp_path), "cuda").seconds


def test_a_probe_measures_without_any_record(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "ccl-sc", "--seeds", 1, "--results", tmp_path, "--dry-run")
    assert "device-hours unknown" in run_here(*common).stdout
    probed = run_here(*common, "--probe").stdout
    assert "device-minutes" in probed
    assert not tmp_path.joinpath("tiny").exists(), "a probe leaves nothing"
