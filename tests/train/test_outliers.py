"""Outliers of a task: which are drawn, whose id they are part of, and whole trainings with them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.data import dataset
from benchmark.data.cache import Folders
from benchmark.data.dataset import DataSet, cycled_order, facts_of, load, prepare
from benchmark.interface import Batch
from benchmark.jobs.job import Job
from benchmark.jobs.plan import Planner, plan, resolve_config
from benchmark.train.context import Context
from benchmark.train.distributed import Team
from benchmark.train.preflight import find_outliers
from benchmark.train.run_job import run_job
from benchmark.train.trainer import Trainer
from methods import Registry
from tests.conftest import NOWHERE, PLENTY, TINY, data_hash, run_here
from tests.train.test_speed_settings import assert_resumes

CPU = torch.device("cpu")
REGISTRY = Registry()
NOISE = """
extends = "digits"
title = "noise"
[data]
source = "arrays"
path = "noise.npz"
test_share = 0.1
val = 0.0
"""


@pytest.fixture
def beside(tiny: Path, tmp_path: Path) -> Path:
    """The tiny task with 60 other digits as its outliers, made in memory: fewer than it has training images."""
    (tmp_path / "others.toml").write_text(TINY.replace("train_images = 170", "train_images = 60"))
    tiny.write_text(TINY.replace("[data]", '[data]\noutliers = "./others.toml"'))
    return tiny


def write_noise(folder: Path, seed: int = 0, side: int = 8) -> Path:
    folder.mkdir(exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (40, side, side), dtype=np.uint8)
    np.savez(folder / "noise.npz", images=noise, labels=np.arange(40) % 3)
    (folder / "noise.toml").write_text(NOISE)
    return folder / "noise.toml"


def jobs_of(path: Path, label: str, *overrides: str, folders: Folders = NOWHERE) -> list[Job]:
    task = load_task(str(path), overrides)
    loaded, sha256 = load(task.data, folders)
    find = partial(find_outliers, task.data, facts_of(task.data, loaded), folders, required=True)
    return [entry.jobs[0] for entry in plan(task, [label], [0], REGISTRY, sha256, outliers=find)]


def data_of(job: Job, budget: int = PLENTY) -> DataSet:
    return prepare(job.task.data, NOWHERE, 0, CPU, budget, with_outliers=True)


def pairs(path: Path, budget: int = PLENTY, epoch: int = 0, batch_size: int = 32, first: int = 0) -> Iterator[Batch]:
    (job,) = jobs_of(path, "OpenMix")
    return data_of(job, budget).batches(batch_size, 0, epoch, job.task.augment, 1, first=first, outliers=True)


def all_outliers(batches: Iterator[Batch]) -> torch.Tensor:
    return torch.cat([batch.outliers for batch in batches if batch.outliers is not None])


@pytest.mark.parametrize(("count", "needed"), [(7, 20), (20, 7), (5, 5)])
def test_each_outlier_comes_once_before_any_comes_again(count: int, needed: int) -> None:
    order = cycled_order(count, needed, seed=0, epoch=1)
    assert len(order) == needed
    for start in range(0, needed, count):
        part = order[start : start + count]
        assert len(set(part)) == len(part)
    assert not np.array_equal(order, cycled_order(count, needed, seed=0, epoch=2))
    assert not np.array_equal(order, cycled_order(count, needed, seed=1, epoch=1))


def test_every_batch_has_as_many_and_they_depend_on_seed_and_epoch_alone(beside: Path) -> None:
    whole = list(pairs(beside))
    assert all(batch.outliers is not None and batch.outliers.shape == batch.images.shape for batch in whole)
    assert len({batch.stream for batch in whole}) == len(whole)
    plain = replace(jobs_of(beside, "OpenMix")[0].task.augment, crop_padding=0)
    data = data_of(jobs_of(beside, "OpenMix")[0])
    sized = [all_outliers(data.batches(size, 0, 0, plain, 1, outliers=True)) for size in (32, 50)]
    assert torch.equal(*sized), "the order is no matter of the size of a batch"
    streamed, later = list(pairs(beside, budget=0)), list(pairs(beside, first=2))
    for found, expected in ((streamed, whole), (later, whole[2:])):
        assert torch.equal(all_outliers(iter(found)), all_outliers(iter(expected)))
        assert [batch.stream for batch in found] == [batch.stream for batch in expected]
    assert not torch.equal(all_outliers(pairs(beside, epoch=1)), all_outliers(iter(whole)))


def test_the_images_of_the_task_are_those_of_a_run_without_outliers(beside: Path) -> None:
    (job,) = jobs_of(beside, "SR")
    with_them, without = (data_of(job).batches(32, 0, 0, job.task.augment, 1, outliers=each) for each in (True, False))
    for ours, expected in zip(with_them, without, strict=True):
        assert torch.equal(ours.images, expected.images)
        assert expected.outliers is None


@pytest.mark.parametrize("mixing", ["none", "regmixup"])
def test_ranks_train_on_parts_of_the_same_outliers(beside: Path, mixing: str) -> None:
    (job,) = jobs_of(beside, "OpenMix", f"mixing.name={mixing}")
    whole = Trainer(job, REGISTRY, data_of(job), CPU)
    method = whole.start().method
    parts = zip(*(replace(whole, ranks=Team(rank, 2)).batches(method, 1) for rank in range(2)), strict=True)
    for expected, shared in zip(whole.batches(method, 1), parts, strict=True):
        assert expected.outliers is not None
        assert torch.equal(
            torch.cat([part.outliers for part in shared if part.outliers is not None]), expected.outliers
        )
        assert {part.draw_beta(10.0) for part in shared} == {expected.draw_beta(10.0)}


def test_only_who_needs_outliers_has_them_in_its_id(beside: Path, tmp_path: Path) -> None:
    (plain,), (own,) = jobs_of(beside, "SR"), jobs_of(beside, "OpenMix")
    text = beside.read_text()
    beside.write_text(TINY)
    assert jobs_of(beside, "SR")[0].id == plain.id
    assert "outliers_sha256" not in plain.identity()
    beside.write_text(text)
    assert own.identity()["outliers_sha256"] == own.outliers_sha256
    others = tmp_path / "others.toml"
    others.rename(tmp_path / "renamed.toml")
    beside.write_text(text.replace("others.toml", "renamed.toml"))
    assert jobs_of(beside, "OpenMix")[0].id == own.id, "a name is not what the images are"
    renamed = tmp_path / "renamed.toml"
    renamed.write_text(renamed.read_text().replace("train_images = 60", "train_images = 61"))
    assert jobs_of(beside, "OpenMix")[0].id != own.id
    assert jobs_of(beside, "SR")[0].id == plain.id


def test_the_id_changes_with_the_content_of_files(tiny: Path, tmp_path: Path) -> None:
    folders, ids = Folders(tmp_path, tmp_path / "cache"), []
    for folder, seed in (("a", 0), ("b", 1), ("copy", 0)):
        noise = write_noise(tmp_path / folder, seed)
        (job,) = jobs_of(tiny, "OpenMix", f"data.outliers={noise}", folders=folders)
        ids.append(job.id)
    assert ids[0] == ids[2] != ids[1]


def test_nobody_else_loads_outliers(beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "load_outliers", lambda *_: pytest.fail("loaded"))
    (tmp_path / "others.toml").unlink()
    result = run_here("--datasets", beside, "--methods", "sr", "--seeds", 1, "--results", tmp_path / "r")
    assert result.returncode == 0, result.stderr


def test_images_that_changed_after_the_plan_are_noticed(beside: Path, tmp_path: Path) -> None:
    (job,) = jobs_of(beside, "OpenMix")
    others = tmp_path / "others.toml"
    others.write_text(others.read_text().replace("train_images = 60", "train_images = 61"))
    with pytest.raises(ValueError, match="have changed since this job was planned"):
        run_job(job, Context(tmp_path / "r", NOWHERE, REGISTRY), CPU, lambda values: None)


@pytest.mark.parametrize("settings", [(), ("optimizer.sharpness=sam",), ("mixing.name=regmixup",)])
def test_a_killed_job_resumes_to_the_bit(beside: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    assert_resumes(jobs_of(beside, "OpenMix", *settings)[0], tmp_path, CPU)


def test_a_run_with_files_of_noise_says_that_it_had_more_data(tiny: Path, tmp_path: Path) -> None:
    noise = write_noise(tmp_path / "noise")
    common = ("--datasets", tiny, "--set", f"data.outliers={noise}", "--results", tmp_path / "r", "--seeds", 1)
    common = (*common, "--cache-dir", tmp_path / "cache", "--methods", "sr", "openmix", "openmix+swa+sam")
    planned = json.loads(run_here(*common, "--dry-run", "--json").stdout)
    result = run_here(*common, "--reference", "sr")
    assert result.returncode == 0, result.stderr
    table = (tmp_path / "r" / "tables" / "tiny.md").read_text()
    assert "OpenMix, seed 0: trained with extra data (the training images of 'noise')." in table
    assert "OpenMix+SAM+SWA, seed 0: trained with extra data" in table
    assert "SR, seed 0: trained" not in table
    ids = {path.parts[-3] for path in (tmp_path / "r").rglob("record.json")}
    assert ids <= {job["job"] for job in planned["tasks"][0]["jobs"]}, "a plan without a cache knows the ids"


def test_without_outliers_its_column_is_a_dash_with_the_reason(tiny: Path, tmp_path: Path) -> None:
    result = run_here("--datasets", tiny, "--methods", "sr", "openmix", "--seeds", 1, "--results", tmp_path)
    assert result.returncode == 0, result.stderr
    reason = "OpenMix: needs images of another data set, and data.outliers names none"
    assert reason in result.stderr
    assert reason in (tmp_path / "tables" / "tiny.md").read_text()


def test_a_job_that_cannot_be_is_not_planned(tiny: Path) -> None:
    task, method = load_task(str(tiny)), REGISTRY.get("open_mix")
    planner = Planner(task, REGISTRY, data_hash(task))
    with pytest.raises(UserError, match=r"data\.outliers names none"):
        planner.job("OpenMix", "open_mix", resolve_config(task, "OpenMix", "open_mix", method), 0)


@pytest.mark.parametrize(
    ("outliers", "said"),
    [
        ("big", "has images of 1×9×9 pixels, and the task of 1×8×8 pixels; they must be alike"),
        ("gaussians", "has images of 1×16×16 floats"),
        ("svnh", "svhn"),
        ("./nowhere.toml", "nowhere.toml' does not exist"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tiny: Path, tmp_path: Path, outliers: str, said: str) -> None:
    name = write_noise(tmp_path / "big", side=9) if outliers == "big" else outliers
    common = ("--datasets", tiny, "--methods", "openmix", "--cache-dir", tmp_path / "cache", "-q")
    result = run_here(*common, "--set", f"data.outliers={name}", "--reference", "openmix", "--results", tmp_path / "r")
    assert result.returncode == 2
    assert said in result.stderr
    assert len([line for line in result.stderr.splitlines() if not line.startswith("caching")]) == 1
    assert not (tmp_path / "r").exists()
