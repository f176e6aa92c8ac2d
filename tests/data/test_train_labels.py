"""Training labels from a file: how they are read, what gets them, which ids they change, and what is refused."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.base.errors import MissingData, UserError
from benchmark.config.load import load_task
from benchmark.config.recipe import recipe_of
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders, cache_name
from benchmark.data.dataset import DataSet, facts_of, load, load_outliers, prepare
from benchmark.data.sources._train_labels import remark_on_labels
from benchmark.jobs.job import Job
from benchmark.jobs.plan import plan
from benchmark.store.store import Store
from benchmark.train.preflight import filled_in
from benchmark.train.pretrained.features import Wanted
from methods import Registry
from tests.conftest import PLENTY, TINY, run_here, tables_of
from tests.train.test_speed_settings import assert_resumes

REGISTRY = Registry()
NUM_TRAIN = 400
"""Of digits; the tiny task uses 170 of them."""
OWN = load(load_task("digits").data, Folders(Path(), Path()))[0].train.labels
NOISY = np.where(np.arange(NUM_TRAIN) % 3, OWN, (OWN + 1) % 10)
"""Every third label is wrong."""


def folders_in(folder: Path) -> Folders:
    return Folders(folder / "data", folder / "cache")


@pytest.fixture
def noisy(tiny: Path, tmp_path: Path) -> Path:
    """The tiny task with labels in a file beside it."""
    np.savez(tmp_path / "people.npz", worst=NOISY, clean=OWN.astype(np.uint8))
    tiny.write_text(TINY.replace("[data]", '[data]\ntrain_labels = "people.npz:worst"'))
    return tiny


def read(path: Path, *overrides: str) -> TaskConfig:
    return filled_in(load_task(str(path), overrides), folders_in(path.parent))


def job_of(path: Path, *overrides: str, label: str = "SR") -> Job:
    task = read(path, *overrides)
    sha256 = load(task.data, folders_in(path.parent))[1]
    return plan(task, [label], [0], REGISTRY, sha256)[0].jobs[0]


def data_of(path: Path, *overrides: str, held_out: float = 0.0) -> DataSet:
    task, cpu = read(path, *overrides), torch.device("cpu")
    return prepare(task.data, folders_in(path.parent), 0, cpu, PLENTY, held_out=held_out)


def test_what_trains_and_validates_has_them_and_what_tests_has_not(noisy: Path) -> None:
    data, plain = data_of(noisy), data_of(noisy, "data.train_labels=")
    assert data.val is not None and plain.val is not None
    for split, clean in ((data.train, plain.train), (data.val, plain.val)):
        assert np.array_equal(split.ids, clean.ids), "the split is that of the clean task"
        assert np.array_equal(clean.labels.numpy(), OWN[split.ids])
        assert np.array_equal(split.labels.numpy(), NOISY[split.ids])
        assert not torch.equal(split.labels, clean.labels)
    assert torch.equal(data.test.labels, plain.test.labels)
    assert (data.sha256, data.labels_changed) == (plain.sha256, np.mean(NOISY != OWN))
    assert plain.labels_changed is None


def test_a_trial_is_judged_by_them(noisy: Path) -> None:
    """No clean label is seen before the test."""
    data = data_of(noisy, held_out=0.25)
    assert np.array_equal(data.test.labels.numpy(), NOISY[data.test.ids])
    assert len({*data.train.ids, *data.test.ids}) == len(data.train) + len(data.test)


def test_however_they_are_stored_the_id_is_that_of_their_values(noisy: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "worst.npy", NOISY.astype(np.int8))
    (tmp_path / "data").mkdir()
    np.savez_compressed(tmp_path / "data" / "single.npz", anything=NOISY)
    ids = {job_of(noisy).id}
    ids |= {job_of(noisy, f"data.train_labels={tmp_path / name}").id for name in ("worst.npy", "data/single.npz")}
    ids |= {job_of(noisy, "data.train_labels=single.npz").id}  # from the folder of the data sets
    assert len(ids) == 1
    others = {job_of(noisy, f"data.train_labels={tmp_path}/{name}").id for name in ("people.npz:clean",)}
    plain = job_of(noisy, "data.train_labels=")
    assert len({*ids, *others, plain.id}) == 3
    assert not [name for name in plain.identity()["data"] if name.startswith("train_labels")]
    np.savez(tmp_path / "people.npz", worst=np.roll(NOISY, 1))
    assert job_of(noisy).id not in ids


def test_images_are_cached_once_for_all_labels(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(256, size=(40, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images, labels=np.arange(40) % 4)
    np.save(tmp_path / "labels.npy", np.arange(32) % 3)
    text = TINY.replace('source = "digits"', 'source = "arrays"\npath = "images.npz"\ntest_share = 0.2')
    (tmp_path / "own.toml").write_text(text.replace("train_images = 170\ntest_images = 200\n", ""))
    plain = read(tmp_path / "own.toml")
    labelled = read(tmp_path / "own.toml", f"data.train_labels={tmp_path}/labels.npy")
    assert cache_name(plain.data) == cache_name(labelled.data)
    found = [load(task.data, folders_in(tmp_path)) for task in (plain, labelled)]
    assert found[0][1] == found[1][1]
    assert [path.name for path in (tmp_path / "cache").glob("arrays-*") if path.is_dir()] == [cache_name(plain.data)]
    assert found[1][0].train.labels.tolist() == (np.arange(32) % 3).tolist()
    assert found[1][0].num_classes == 4


def test_who_needs_the_images_alone_does_without_the_file(noisy: Path, tmp_path: Path) -> None:
    task, folders = read(noisy), folders_in(tmp_path)
    assert Wanted(task, folders, ("cpu",)).data.train_labels == ""
    (tmp_path / "people.npz").unlink()
    plain = load_task("digits").data
    facts = facts_of(plain, load(plain, folders)[0])
    outliers, _ = load_outliers(replace(plain, outliers=str(noisy)), facts, folders, build=True)
    assert len(outliers) == 170
    result = run_here(
        *("--datasets", "digits", "--methods", "sr", "--dry-run", "--evaluate", f"shift={noisy}"),
        *("--results", tmp_path / "results"),
    )
    assert result.returncode == 0, result.stderr


def test_a_path_is_relative_to_its_file_then_to_the_data(
    noisy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    np.savez(elsewhere / "people.npz", worst=OWN)
    monkeypatch.chdir(elsewhere)
    assert read(noisy).data.train_labels == str(tmp_path / "people.npz:worst")
    own = read(noisy, "data.train_labels=people.npz:worst").data
    assert own.train_labels == str(elsewhere / "people.npz:worst")
    (tmp_path / "data").mkdir()
    shutil.move(tmp_path / "people.npz", tmp_path / "data")
    from_data = read(noisy).data
    assert from_data.train_labels == "people.npz:worst", "the current folder is none of the two"
    assert from_data.train_labels_sha256 != own.train_labels_sha256


def test_the_hash_in_a_task_file_is_checked_and_can_stand_for_a_missing_file(noisy: Path, tmp_path: Path) -> None:
    sha256 = read(noisy).data.train_labels_sha256
    assert len(sha256) == 64
    known, planned = f"data.train_labels_sha256={sha256}", job_of(noisy)
    assert job_of(noisy, known).id == planned.id
    with pytest.raises(UserError, match=rf"have the SHA-256 {sha256}, and data.train_labels_sha256 is another"):
        read(noisy, f"data.train_labels_sha256={'0' * 64}")
    with pytest.raises(UserError, match=r"data.train_labels_sha256 needs data.train_labels"):
        read(noisy, "data.train_labels=", known)
    (tmp_path / "people.npz").unlink()
    assert recipe_of(read(noisy, known)) == recipe_of(planned.task)
    with pytest.raises(MissingData, match=r"people.npz' does not exist; a path is relative to the task file or to"):
        load(read(noisy, known).data, folders_in(tmp_path))
    with pytest.raises(MissingData, match="does not exist"):
        read(noisy)
    dry, run = command(noisy, "--dry-run", "--set", known), command(noisy, "--set", known)
    assert dry.returncode == 0, dry.stderr
    assert "how many differ from those of the data set is not known yet" in dry.stderr
    assert_refused(run, "people.npz' does not exist")


def test_another_file_comes_without_the_hash_of_the_old_one(noisy: Path, tmp_path: Path) -> None:
    text = noisy.read_text()
    noisy.write_text(text.replace("[data]", f'[data]\ntrain_labels_sha256 = "{read(noisy).data.train_labels_sha256}"'))
    child = tmp_path / "child.toml"
    child.write_text('extends = "tiny"\n[data]\ntrain_labels = "people.npz:clean"\n')
    assert read(child).data.train_labels_sha256 not in ("", read(noisy).data.train_labels_sha256)
    child.write_text('extends = "tiny"\n[data]\ntrain_labels = ""\n')
    assert recipe_of(read(child)) == recipe_of(load_task(str(child)))


def test_labels_that_have_changed_since_the_plan_are_refused(noisy: Path, tmp_path: Path) -> None:
    task = read(noisy)
    np.savez(tmp_path / "people.npz", worst=np.roll(NOISY, 1))
    with pytest.raises(UserError, match=r"people.npz:worst' has changed since this was planned; run the command again"):
        load(task.data, folders_in(tmp_path))


@pytest.mark.parametrize("label", ["SAT", "SELE"])
def test_a_killed_job_resumes_to_the_bit(noisy: Path, tmp_path: Path, label: str) -> None:
    assert_resumes(job_of(noisy, label=label), tmp_path, torch.device("cpu"))


def command(path: Path, *flags: object) -> Any:
    places = ("--results", path.parent / "results", "--data-dir", path.parent / "data")
    return run_here("--datasets", path, "--methods", "sr", "--seeds", 1, *places, *flags)


def test_the_share_that_differs_is_said_and_kept(noisy: Path, tmp_path: Path) -> None:
    said = "tiny: training labels from people.npz:worst, 33.5% differ from those of the data set\n"
    dry, done = command(noisy, "--dry-run"), command(noisy)
    assert dry.stderr.count(said) == done.stderr.count(said) == 1, (dry.stderr, done.stderr)
    store = Store(tmp_path / "results")
    (path,) = (tmp_path / "results").glob("tiny/*/*/seed-0/record.json")
    record = json.loads(path.read_text())
    assert record["labels_changed"] == 0.335
    assert record["identity"]["data"]["train_labels_sha256"] == read(noisy).data.train_labels_sha256
    (manifest,) = store.manifests()
    notes = " ".join(tables_of(manifest, store)[0].notes)
    assert "Data: training labels from people.npz:worst, 33.5% differ" in notes
    assert "modified" not in manifest.title and "Modified" not in (tmp_path / "results/tables/tiny.md").read_text()
    page = (tmp_path / "results" / "report.html").read_text()
    assert "33.5% differ from those of the data set" in page
    assert f"digits, training labels {record['identity']['data']['train_labels_sha256'][:8]}" in page
    prepared = run_here("prepare", noisy, "--data-dir", tmp_path / "data")
    assert f"of the data set; sha256 {record['identity']['data']['train_labels_sha256']}" in prepared.stdout


def test_a_plan_says_so_where_the_share_is_not_known() -> None:
    task = load_task("digits", ["data.train_labels=people.npz:worst"])
    assert remark_on_labels(task.data, None).endswith("how many differ from those of the data set is not known yet")
    assert remark_on_labels(task.data, 0.0).endswith("0.0% differ from those of the data set")


BAD = {
    "short.npy": NOISY[:-1],
    "high.npy": np.where(np.arange(NUM_TRAIN) == 17, 10, NOISY),
    "low.npy": np.where(np.arange(NUM_TRAIN) >= 5, -1, NOISY),
    "huge.npy": np.where(np.arange(NUM_TRAIN) == 3, 2**64 - 1, NOISY.astype(np.uint64)),
    "floats.npy": NOISY.astype(float),
    "table.npy": NOISY[:, None],
    "objects.npy": NOISY.astype(object),
}
CASES = [
    (
        "short.npy",
        "'short.npy' has 399 labels, and 'digits' has 400 training images; expected one for each",
    ),
    ("high.npy", "label 17 of 'high.npy', counted from 0, is 10; expected a class from 0 to 9"),
    ("low.npy", "label 5 of 'low.npy', counted from 0, is -1; expected a class from 0 to 9"),
    ("huge.npy", "label 3 of 'huge.npy', counted from 0, is 18446744073709551615; expected a class from 0 to 9"),
    ("floats.npy", r"'floats.npy' must have one whole number per training image, got float64 \(400,\)"),
    ("table.npy", r"'table.npy' must have one whole number per training image, got int64 \(400, 1\)"),
    ("objects.npy", "objects.npy' cannot be read .*allow_pickle=False.*expected whole numbers, saved with numpy"),
    ("text.npy", "text.npy' cannot be read"),
    ("cut.npz:worst", "cut.npz' cannot be read"),
    ("people.npz", "'people.npz' has 2 arrays, expected one; name one: people.npz:worst"),
    ("people.npz:wurst", "unknown array in 'people.npz', which data.train_labels names: 'wurst': did you mean 'worst'"),
    ("nothing.npz", "'nothing.npz' has 0 arrays, expected one"),
    ("people.npz:", "'people.npz' has 2 arrays, expected one"),
    ("nowhere.npy", "nowhere.npy' does not exist; a path is relative to the task file or to --data-dir"),
    ("folder.npy", "folder.npy' is no regular file"),
    ("x" * 300 + ".npy", "does not exist"),
    ("labels.csv", r"expected FILE.npy or FILE.npz:ARRAY, got 'labels.csv'"),
    ("short.npy:worst", "expected FILE.npy or FILE.npz:ARRAY, got 'short.npy:worst'"),
    ("CIFAR-10_human.pt", r"is a pickle.*never read.*convert it once: python -c .*savez\('CIFAR-10_human.npz'"),
]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    for name, array in BAD.items():
        np.save(folder / name, array)
    np.savez(folder / "people.npz", worst=NOISY, clean=OWN)
    np.savez(folder / "nothing.npz")
    (folder / "folder.npy").mkdir()
    (folder / "text.npy").write_text("no numbers")
    (folder / "CIFAR-10_human.pt").write_bytes(b"\x80\x04.")
    (folder / "cut.npz").write_bytes((folder / "people.npz").read_bytes()[:300])
    return folder


@pytest.mark.parametrize(("name", "expected"), CASES, ids=[name[:20] for name, _ in CASES])
def test_bad_labels_give_one_clear_line(bad_files: Path, tmp_path: Path, name: str, expected: str) -> None:
    task = tmp_path / "tiny.toml"
    task.write_text(TINY.replace("[data]", f'[data]\ntrain_labels = "{name}"'))
    assert_refused(run_here("--datasets", task, "--dry-run", "--data-dir", bad_files), expected)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (
            "data.labels=people.npz:worst",
            r"means nothing to source 'digits'; remove it \(training labels from a file are data",
        ),
        ("data.train_lables=people.npz", "did you mean 'train_labels'"),
        ("data.train_labels_sha256=12", "data.train_labels_sha256 needs data.train_labels"),
    ],
)
def test_what_was_meant_is_named(tiny: Path, setting: str, expected: str) -> None:
    assert_refused(run_here("--datasets", tiny, "--dry-run", "--set", setting), expected)


def test_classes_cannot_be_left_out_of_labels_from_a_file(noisy: Path) -> None:
    result = run_here("--datasets", noisy, "--dry-run", "--set", "data.leave_out=3")
    assert_refused(result, "train_labels and leave_out exclude each other")


def assert_refused(result: Any, expected: str) -> None:
    assert result.returncode == 2, result.stderr
    assert re.search(expected, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 and "Traceback" not in result.stderr
