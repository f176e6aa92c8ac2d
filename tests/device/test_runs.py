"""The command line on a device: the first job works, two devices share jobs, and what goes wrong is said."""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

from benchmark.doctor.launches import Launches
from tests.conftest import run_all, run_here
from tests.device.conftest import NAME
from tests.jobs.test_shared_warmup import results_of
from tests.speed import launches

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("children")]


def grid(tiny: Path, results: Path, *more: object) -> list[object]:
    chosen = ["--datasets", tiny, "--methods", "sr", "sat", "--seeds", 1, "--device", NAME]
    return [*chosen, "--results", results, *more]


@pytest.mark.parametrize("workers", [0, 1], ids=["in this process", "in a worker"])
def test_the_first_job_of_a_fresh_process_works(tiny: Path, tmp_path: Path, workers: int) -> None:
    ran = run_all(*grid(tiny, tmp_path, "--workers", workers))
    assert ran.returncode == 0, ran.stderr
    model = torch.get_device_module(NAME).get_device_name(0)
    assert f"first run on {model}: `python run_all.py doctor`" in ran.stderr
    again = run_here(*grid(tiny, tmp_path, "--seeds", 2))
    assert again.returncode == 0 and "first run on" not in again.stderr


def test_two_devices_with_two_jobs_each(tiny: Path, tmp_path: Path) -> None:
    """Four jobs at a time, and the bits of one after the other."""
    several = run_all(*grid(tiny, tmp_path / "several", "--jobs-per-device", 2, "--seeds", 2))
    assert several.returncode == 0, several.stderr
    alone = run_here(*grid(tiny, tmp_path / "alone", "--device", f"{NAME}:0", "--seeds", 2))
    assert alone.returncode == 0, alone.stderr
    assert results_of(tmp_path / "several") == results_of(tmp_path / "alone")


def test_branched_equals_unbranched(tiny: Path, tmp_path: Path, device: torch.device) -> None:
    for settings in ((), ("--amp", "fp16")):
        folder = tmp_path / "-".join(("results", *settings))
        common = ("--datasets", tiny, "--methods", "sr", "sat", "ccl-sc", "--seeds", 1, "--device", NAME, *settings)
        assert run_here(*common, "--results", folder / "alone", "--no-shared-warmup").returncode == 0
        assert run_here(*common, "--results", folder / "shared").returncode == 0
        assert results_of(folder / "alone") == results_of(folder / "shared")


def test_out_of_memory_says_what_to_lower(
    tiny: Path, tmp_path: Path, simulated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIM_LIMIT_BYTES", "40000")
    ran = run_all(*grid(tiny, tmp_path, "--workers", 1))
    assert ran.returncode == 1
    assert f"{NAME}:0 is out of memory: lower --data-budget, --jobs-per-device or --workers" in ran.stderr


def test_a_lost_device_ends_its_process_and_the_job_is_done_in_a_new_one(
    tiny: Path, tmp_path: Path, simulated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    expected = run_here(*grid(tiny, tmp_path / "whole"))
    monkeypatch.setenv("SIM_LOSE_AFTER", "800")
    monkeypatch.setenv("SIM_LOSE_ONCE", str(mark))
    ran = run_all(*grid(tiny, tmp_path / "lost", "--workers", 1))
    assert expected.returncode == ran.returncode == 0, ran.stderr
    assert "lost to this process" in ran.stderr
    assert not mark.exists()
    assert results_of(tmp_path / "lost") == results_of(tmp_path / "whole")


def test_jobs_are_not_shared_among_devices_without_a_way_to_talk(tiny: Path, tmp_path: Path, simulated: None) -> None:
    ran = run_here(*grid(tiny, tmp_path, "--gpus-per-job", 2))
    assert ran.returncode == 2
    assert "--gpus-per-job: expected a device of cpu, cuda, xpu, got sim" in ran.stderr


def test_unknown_and_missing_devices(tiny: Path, tmp_path: Path, device: torch.device) -> None:
    assert "not available" in run_here(*grid(tiny, tmp_path, "--device", f"{NAME}:99")).stderr
    assert "unknown device" in run_here(*grid(tiny, tmp_path, "--device", "gpu")).stderr


def test_a_plan_of_both_devices(tiny: Path, tmp_path: Path, device: torch.device) -> None:
    plan = json.loads(run_here(*grid(tiny, tmp_path, "--dry-run", "--json", "--probe")).stdout)
    assert plan["device_hours"] > 0
    assert Counter(job["state"] for job in plan["tasks"][0]["jobs"])["new"] == 2


def test_operators_are_counted_as_the_device_counts_them(simulated: None) -> None:
    x = torch.ones(8, 8, device="sim", requires_grad=True)
    torch.sim.reset_counters()
    with Launches("sim") as found:
        (x @ x).relu().sum().backward()
    assert found.counts.total() == torch.sim.launches() > 4


@pytest.mark.parametrize("label", ["SR", "SAT+EM", "CCL-SC"])
def test_a_step_asks_for_no_more_operators_than_before(device: torch.device, simulated: None, label: str) -> None:
    assert launches.counted(label, device) <= launches.MOST[label]
