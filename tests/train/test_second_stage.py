"""A second stage starts from the network that its first stage tests, leaves it as it is, and resumes to the bit."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.config.load import load_task
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.jobs.shared_warmup import share_averages, share_warmups
from benchmark.store.store import PREDICTION, Store
from benchmark.tune.search import without_idle_validation
from methods import Registry
from tests.conftest import data_hash, run_here
from tests.jobs.test_shared_warmup import results_of
from tests.train.test_speed_settings import assert_resumes

REGISTRY = Registry()
SHORT = ("method.confid_net.epochs=3", "method.sele.epochs=2", "method.confid_net.lr=0.001")
SET = [word for setting in SHORT for word in ("--set", setting)]


def jobs_of(tiny: Path, *overrides: str) -> dict[str, Job]:
    task = load_task(str(tiny), [*SHORT, "channels_last=true", *overrides])
    entries = plan(task, ["SR", "SELE", "ConfidNet"], [0], REGISTRY, data_hash(task))
    return {entry.label: entry.jobs[0] for entry in entries}


@pytest.mark.parametrize(
    "settings",
    [(), ("checkpoint=best",), ("averaging.name=swa", "averaging.rate=0.5")],
    ids=["last", "best", "swa at a rate of its own"],
)
def test_its_network_is_that_of_the_first_stage(tiny: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    common = ("--datasets", tiny, "--methods", "sr", "sele", "confidnet", "--seeds", 1, *SET, *words)
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    result = run_here(*common, "--results", shared)
    assert result.returncode == 0, result.stderr
    assert run_here(*common, "--results", alone, "--no-shared-warmup").returncode == 0
    assert results_of(shared) == results_of(alone)
    jobs, store = jobs_of(tiny, *settings), Store(shared)
    suffix = "+SWA" if "averaging.name=swa" in settings else ""
    logits = {label: store.read_prediction(job.folder, PREDICTION).prediction.logits for label, job in jobs.items()}
    for label in ("SELE", "ConfidNet"):
        assert np.array_equal(logits[f"{label}{suffix}"], logits[f"SR{suffix}"])
        assert np.array_equal(logits[label], logits["SR"])
    assert not list(shared.rglob("*trunk*"))


def test_a_plan_trains_the_first_stage_once(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "sele", "confidnet", "--seeds", 1, *SET)
    described = json.loads(run_here(*common, "--results", tmp_path, "--dry-run", "--json").stdout)
    assert (described["epochs"], described["epochs_naive"]) == (4 + 2 + 3, 4 + (4 + 2) + (4 + 3))


@pytest.mark.parametrize("label", ["SELE", "ConfidNet", "ConfidNet+SWA"])
def test_a_killed_stage_resumes_to_the_bit(tiny: Path, tmp_path: Path, label: str) -> None:
    job = jobs_of(tiny, *(["averaging.name=swa"] if "+" in label else []))[label]
    stage = 2 if label == "SELE" else 3
    assert (job.warmup_epochs, job.stage_epochs, job.last_epoch) == (4, stage, 4 + stage)
    if "+" in label:
        (job,) = share_averages([job])
    assert_resumes(job, tmp_path, torch.device("cpu"))


def test_without_validation_images_it_is_a_dash(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "sele", "--seeds", 1, *SET, "--set", "data.val=0", "--dry-run")
    result = run_here(*common, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "SELE: needs validation images, and data.val is 0" in result.stdout + result.stderr


def test_what_it_trained_on_is_said(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sele", "--seeds", 1, *SET, "--results", tmp_path)
    assert run_here(*common).returncode == 0
    (record,) = tmp_path.rglob("record.json")
    assert "validation images trained its second stage" in json.loads(record.read_text())["notes"][0]


def test_a_trunk_takes_the_average_whoever_comes_first(tiny: Path, tmp_path: Path) -> None:
    task = load_task(str(tiny), [*SHORT, "averaging.name=swa"])
    entries = plan(task, ["DG", "ConfidNet"], [0], REGISTRY, data_hash(task))
    jobs = [job for entry in entries for each in entry.jobs for job in (*each.all_needs, each)]
    shared = share_warmups(share_averages(list({job.folder: job for job in jobs}.values())), Store(tmp_path))
    (trunk,) = (job for job in shared if job.until)
    assert (trunk.until, [each.name for each in trunk.averages]) == (4, ["swa"])


def test_a_search_keeps_the_validation_images_that_it_trains_on(tiny: Path) -> None:
    task = load_task(str(tiny))
    assert without_idle_validation(task, REGISTRY.get("sele"), REGISTRY).data.val == 0.1
    assert without_idle_validation(task, REGISTRY.get("cross_entropy"), REGISTRY).data.val == 0
