"""`prepare`, and tasks on a user's own images, as a user meets them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.data import dataset
from tests.conftest import ROOT, run_here
from tests.image_sets import write_celeba, write_class_folders

OWN = re.search(r"```toml title=\"leaves.toml\"\n(.*?)```", (ROOT / "docs" / "tasks.md").read_text(), re.S)
"""The task file that the page on data shows."""


@pytest.fixture
def leaves(tmp_path: Path) -> Path:
    """The task of that page beside images for it."""
    assert OWN
    assert len(OWN[1].splitlines()) <= 10
    write_class_folders(tmp_path / "leaves", 30, ("oak", "elm", "ash"))
    task = tmp_path / "leaves.toml"
    task.write_text(OWN[1])
    return task


def test_prepare_says_what_there_is(tmp_path: Path) -> None:
    write_celeba(tmp_path)
    result = run_here("prepare", "celeba", "gaussians", "--data-dir", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "celeba: 12 train, 6 test, 4 val images for 3×224×224 input, 2 classes; checksums verified" in result.stdout
    assert "3.32 MB in" in result.stdout
    assert re.search(r"sha256 [0-9a-f]{64}\n", result.stdout)
    assert "gaussians: made in memory, nothing to prepare" in result.stdout
    again = run_here("prepare", "celeba", "--data-dir", tmp_path)
    assert again.stderr == ""
    assert again.stdout in result.stdout


def test_what_is_missing_does_not_stop_the_others(tmp_path: Path) -> None:
    write_celeba(tmp_path)
    result = run_here("prepare", "imagenet", "celeba", "--data-dir", tmp_path, "--cache-dir", tmp_path / "elsewhere")
    assert result.returncode == 2
    assert "error: imagenet: no '" in result.stderr
    assert "celeba: 12 train" in result.stdout
    assert (tmp_path / "elsewhere").is_dir()
    assert not (tmp_path / "cache").exists()


def test_folders_come_from_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_celeba(tmp_path / "sets")
    monkeypatch.setenv("SELBENCH_DATA", str(tmp_path / "sets"))
    monkeypatch.setenv("SELBENCH_CACHE", str(tmp_path / "fast"))
    assert run_here("prepare", "celeba").returncode == 0
    assert len(list((tmp_path / "fast").glob("celeba-*/manifest.json"))) == 1


SMALL = ("--set", "epochs=20", "--set", "network.widths=4,8", "--seeds", "1", "--methods", "sr")


def test_own_images_from_a_ten_line_task(leaves: Path, tmp_path: Path) -> None:
    common = ("--datasets", leaves, "--data-dir", tmp_path / "data", "--results", tmp_path / "r", *SMALL)
    planned = run_here(*common, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "data not cached" in planned.stdout
    assert not (tmp_path / "data").exists()
    result = run_here(*common)
    assert result.returncode == 0, result.stderr
    assert "caching folder: 90 images" in result.stderr
    assert "Selective risk" in result.stdout
    assert "1 done" in run_here(*common, "--dry-run").stdout


def test_a_plan_shows_the_ids_and_the_preprocessing_that_the_run_will_have(leaves: Path, tmp_path: Path) -> None:
    """Before and after the images are cached."""
    common = ("--datasets", leaves, "--data-dir", tmp_path / "data", "--results", tmp_path / "r", *SMALL)
    before = run_here(*common, "--dry-run", "--json")
    prepared = run_here("prepare", leaves, "--data-dir", tmp_path / "data")
    after = run_here(*common, "--dry-run", "--json")
    plans = [json.loads(result.stdout)["tasks"][0] for result in (before, after)]
    assert [plan["data"] for plan in plans] == ["not cached", "present"]
    assert plans[0]["jobs"] == plans[1]["jobs"]
    line = re.search(r"own images: mean \d.* \(measured from the training images\); augmentation flip", before.stderr)
    assert line
    assert line[0] in prepared.stdout
    assert line[0] in after.stderr
    ran = run_here(*common)
    assert line[0] in ran.stderr
    record = json.loads(next((tmp_path / "r" / "leaves").rglob("record.json")).read_text())
    assert record["job"] == plans[0]["jobs"][0]["job"]
    assert " ".join(f"{value:g}" for value in record["measured"]["mean"]) in line[0]


def test_a_plan_does_not_decode_a_large_set(leaves: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.train.preflight.SMALL_BYTES", 1000)
    monkeypatch.setattr("benchmark.data.cache_build.decode", None)
    planned = run_here("--datasets", leaves, "--data-dir", tmp_path / "data", *SMALL, "--dry-run")
    assert "measured when they are cached" in planned.stderr
    assert "job ids depend on the images, and are known once the images are cached" in planned.stdout


def test_the_same_results_streamed_resident_and_elsewhere(leaves: Path, tmp_path: Path) -> None:
    """Where the images lie is no part of a job's identity, and not of its result."""
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "leaves.toml").write_text(leaves.read_text())
    (moved / "leaves").symlink_to(tmp_path / "leaves")
    predictions = []
    for name, task, budget in (("a", leaves, "0"), ("b", leaves, "1GB"), ("c", moved / "leaves.toml", "1GB")):
        results = tmp_path / "results" / name
        result = run_here("--datasets", task, "--data-dir", tmp_path / name, "--results", results, *SMALL,
                          "--data-budget", budget)  # fmt: skip
        assert result.returncode == 0, result.stderr
        predictions.append({path.relative_to(results): path.read_bytes() for path in results.rglob("*.npz")})
    assert predictions[0] == predictions[1] == predictions[2]
    assert sorted(path.name for path in predictions[0]) == ["classifier.npz", "prediction-val.npz", "prediction.npz"]


@pytest.mark.parametrize(("given", "expected"), [("1.5MB", 1_500_000), (None, 125)])
def test_the_budget_reaches_the_jobs(
    tiny: Path, tmp_path: Path, given: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = []
    place = dataset.place_on_device

    def note_budget(splits: Any, device: Any, budget: int) -> Any:
        budgets.append(budget)
        return place(splits, device, budget)

    monkeypatch.setattr(dataset, "place_on_device", note_budget)
    monkeypatch.setattr("benchmark.train.outcome.finish.data_budget", lambda device, jobs: 125)
    flags = ["--data-budget", given] if given else []
    assert run_here("--datasets", tiny, "--results", tmp_path, "--seeds", 1, "--methods", "sr", *flags).returncode == 0
    assert budgets == [expected]


def test_the_official_validation_images_are_predicted(tmp_path: Path) -> None:
    """celeba-cpu as it is, but for its length: trains, validates on the official split, tests."""
    write_celeba(tmp_path)
    result = run_here("--datasets", "celeba-cpu", "--data-dir", tmp_path, "--results", tmp_path / "r", "--seeds", 1,
                      "--methods", "sr", "--set", "epochs=5")  # fmt: skip
    assert "12 of 10,000 training images are there" in result.stderr
    folders = list((tmp_path / "r").glob("celeba-cpu/cross_entropy/*/seed-0"))
    assert len(folders) == 1
    with np.load(folders[0] / "prediction-val.npz") as stored:
        assert len(stored["labels"]) == 4


def test_a_job_refuses_images_that_changed_after_it_was_planned(leaves: Path, tmp_path: Path) -> None:
    from benchmark.base.errors import MissingData
    from benchmark.config.load import load_task
    from benchmark.data.cache import Folders
    from benchmark.jobs.plan import plan
    from benchmark.train.context import Context
    from benchmark.train.run_job import run_job
    from methods import Registry

    registry, folders = Registry(), Folders(tmp_path / "data", tmp_path / "cache")
    task, context = load_task(str(leaves)), Context(tmp_path / "r", folders, registry)
    job = plan(task, ["SR"], [0], registry, "what it was")[0].jobs[0]
    with pytest.raises(MissingData, match="not cached yet"):
        run_job(job, context, torch.device("cpu"), lambda values: None)
    dataset.load(task.data, folders)
    with pytest.raises(ValueError, match="have changed since this job was planned"):
        run_job(job, context, torch.device("cpu"), lambda values: None)
