"""`features`: what a network makes of a task's images, once, and a task file that trains on it."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch.nn.functional import interpolate

from benchmark.base.errors import UserError
from benchmark.config.load import load_task
from benchmark.data.cache import Folders
from benchmark.data.cache_build import JOURNAL
from benchmark.data.dataset import load
from benchmark.train.pretrained import features as features_module
from tests.conftest import run_here

COUNTS = {"train": 70, "val": 9, "test": 33}
BASE = """
title = "stripes"
methods = ["SR", "SAT"]
reference = "SR"
coverages = [100, 50]
seeds = 1
epochs = 60
batch_size = 8
[data]
source = "arrays"
path = "images.npz"
official_val = true
test_images = 20
[network]
name = "small_cnn"
widths = [4]
[optimizer]
name = "sgd"
lr = 0.1
[method.self_adaptive]
warmup_epochs = 15
[method.ccl_sc]
warmup_epochs = 0
queue_size = 16
[[evaluate]]
kind = "humans"
file = "people.npz"
[[evaluate]]
kind = "corruptions"
"""


def made_up_weights(path: Path) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    state = timm.create_model("test_resnet", num_classes=4).state_dict()
    for tensor in state.values():
        if tensor.is_floating_point():
            tensor.add_(0.01 * torch.rand_like(tensor))
    torch.save(state, path)
    return dict(state)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A task of made-up images with an official validation split, label counts of people, and weights beside it."""
    random, arrays = np.random.default_rng(1), {}
    for part, count in COUNTS.items():
        arrays[f"{part}_labels"] = np.arange(count) % 3
        noise = random.integers(60, size=(count, 3, 12, 12), dtype=np.uint8)
        arrays[f"{part}_images"] = noise + 90 * arrays[f"{part}_labels"].astype(np.uint8)[:, None, None, None]
    np.savez(tmp_path / "images.npz", **arrays)
    np.savez(tmp_path / "people.npz", counts=1 + np.eye(3, dtype=np.int64)[arrays["test_labels"]] * 8)
    made_up_weights(tmp_path / "weights.pth")
    (tmp_path / "stripes.toml").write_text(BASE)
    return tmp_path


def arguments(base: Path, *more: str) -> list[str]:
    return [
        "features", str(base / "stripes.toml"), "--network", "timm:test_resnet", "--weights", str(base / "weights.pth"),
        "--size", "32", "--to", str(base / "small.toml"), "--cache-dir", str(base / "cache"), "--device", "cpu", *more,
    ]  # fmt: skip


def loaded(base: Path, name: str = "small.toml") -> Any:
    folders = Folders(base, base / "cache")
    return load(load_task(str(base / name)).data, folders)[0]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(features_module, "PIECE", 32)
    for module in ("benchmark.train.pretrained.feature_files.PIECE",):
        monkeypatch.setattr(module, 32)
    monkeypatch.setattr(features_module.Workers.features, "__defaults__", (32,))
    monkeypatch.setattr(features_module, "PROBE_SECONDS", 0.05)
    yield


def plain_features(base: Path, images: Any) -> Any:
    """One forward pass with timm alone."""
    network = timm.create_model("test_resnet", num_classes=4).eval()
    network.load_state_dict(torch.load(base / "weights.pth", weights_only=True))
    network.reset_classifier(0)
    mean, std = (
        torch.tensor(getattr(network.pretrained_cfg, name, network.pretrained_cfg[name])) for name in ("mean", "std")
    )
    pixels = torch.from_numpy(images).float() / 255
    scaled = (pixels - mean[:, None, None]) / std[:, None, None]
    with torch.no_grad():
        return network(interpolate(scaled, (32, 32), mode="bilinear", antialias=True)).numpy()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3)])
def test_features_are_those_of_a_plain_forward_pass(base: Path, dtype: str, tolerance: float) -> None:
    run = run_here(*arguments(base, "--dtype", dtype))
    assert run.returncode == 0, run.stderr
    arrays, found = np.load(base / "images.npz"), loaded(base)
    for name, images in {"train": found.train, "val": found.val}.items():
        vectors = np.asarray(images.pictures)
        assert vectors.dtype == dtype and vectors.shape[2:] == (1, 1)
        assert np.array_equal(images.labels, arrays[f"{name}_labels"])
        assert np.allclose(vectors[:, :, 0, 0], plain_features(base, arrays[f"{name}_images"]), tolerance, tolerance)


def test_labels_splits_and_numbers_of_images_are_those_of_the_task(base: Path) -> None:
    assert run_here(*arguments(base)).returncode == 0
    ours, theirs = loaded(base), loaded(base, "stripes.toml")
    for split, images in theirs.splits().items():
        assert np.array_equal(ours.splits()[split].rows, images.rows)
        assert np.array_equal(ours.splits()[split].labels, images.labels)
    assert len(ours.test) == 20 and ours.test.rows.max() > 20  # a part of the 33, by the same draw


def test_the_task_file_says_what_the_task_says_and_trains(base: Path) -> None:
    assert run_here(*arguments(base)).returncode == 0
    written = tomllib.loads((base / "small.toml").read_text())
    kept = {name: written[name] for name in ("title", "methods", "reference", "coverages")}
    assert kept == {
        "title": "stripes (features of test_resnet)", "methods": ["SR", "SAT"], "reference": "SR",
        "coverages": [100, 50],
    }  # fmt: skip
    share = written["epochs"] / 60
    assert written["method"]["self_adaptive"]["warmup_epochs"] == round(15 * share)
    assert written["method"]["ccl_sc"] == {"warmup_epochs": 0, "queue_size": 16}
    assert [each["kind"] for each in written["evaluate"]] == ["humans"]
    run = run_here(
        "--datasets", base / "small.toml", "--results", base / "r", "--set", "epochs=8", "--seeds", "1", "--set",
        "method.self_adaptive.warmup_epochs=2", "--cache-dir", base / "cache", "--device", "cpu",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (base / "r" / "tables" / "small.md").is_file()
    assert (base / "r" / "small-people").is_dir() or list((base / "r").glob("small-*"))


def test_a_killed_computation_goes_on_to_the_same_bytes(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def contents(cache: Path) -> dict[str, bytes]:
        (folder,) = cache.glob("features-*-test_resnet-*[0-9a-f]")
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert run_here(*arguments(base)).returncode == 0
    whole = contents(base / "cache")
    other, real, seen = base / "other", features_module.Workers.features, []

    def dies(self: Any, piece: tuple[str, int], most: int = 32) -> Any:
        if piece == ("val", 0):
            raise KeyboardInterrupt
        return real(self, piece, most)

    monkeypatch.setattr(features_module.Workers, "features", dies)
    assert run_here(*arguments(base), "--cache-dir", other).returncode == 130
    (partial,) = other.glob("*.partial")
    noted = (partial / JOURNAL).read_text().splitlines()
    assert noted and not list(other.glob("features-*[0-9a-f]/manifest.json"))
    with (partial / "train.pixels").open("r+b") as file:
        file.write(b"damage")  # of the first piece, which is then computed again

    def counts(self: Any, piece: tuple[str, int], most: int = 32) -> Any:
        seen.append(piece)
        return real(self, piece, most)

    monkeypatch.setattr(features_module.Workers, "features", counts)
    run = run_here(*arguments(base), "--cache-dir", other)
    assert run.returncode == 0 and "are there already" in run.stderr
    done = {(line.split()[0], int(line.split()[1])) for line in noted}
    assert ("train", 0) in seen and not set(seen) & (done - {("train", 0)})
    assert contents(other) == whole


def test_what_is_there_is_not_computed_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here(*arguments(base)).returncode == 0
    before = (base / "small.toml").read_bytes()
    (base / "small.toml").unlink()

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(features_module, "make_worker", never)
    assert run_here(*arguments(base)).returncode == 0
    assert (base / "small.toml").read_bytes() == before
    plan = run_here(*arguments(base, "--dry-run"))
    assert "nothing to compute" in plan.stdout


def test_damaged_features_are_computed_again(base: Path) -> None:
    assert run_here(*arguments(base)).returncode == 0
    (folder,) = (base / "cache").glob("features-*-test_resnet-*[0-9a-f]")
    whole = (folder / "test.pixels").read_bytes()
    (folder / "test.pixels").write_bytes(b"\x01" * len(whole))
    with pytest.raises(UserError, match="compute the features again"):
        loaded(base)
    run = run_here(*arguments(base))
    assert run.returncode == 0 and "computing the features again" in run.stderr
    assert (folder / "test.pixels").read_bytes() == whole


def test_a_plan_computes_and_writes_nothing(base: Path) -> None:
    run = run_here(*arguments(base, "--dry-run"))
    assert run.returncode == 0, run.stderr
    width = timm.create_model("test_resnet", num_classes=0).num_features
    assert f"112 images (70 train, 33 test, 9 val), {width:,} numbers each" in run.stdout
    assert f"{2 * width * 112 / 1000:.3g} kB" in run.stdout and "time: " in run.stdout
    assert not (base / "small.toml").exists() and not list((base / "cache").glob("features*"))


def test_the_manifest_names_what_made_the_features(base: Path) -> None:
    assert run_here(*arguments(base)).returncode == 0
    (folder,) = (base / "cache").glob("features-*-test_resnet-*[0-9a-f]")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["network"]["name"] == "timm:test_resnet" and manifest["network"]["input_size"] == 32
    vectors = np.asarray(loaded(base).train.pictures).astype(np.float64)[:, :, 0, 0]
    assert np.allclose(manifest["measured"]["mean"], vectors.mean(axis=0), rtol=1e-5)
    std = vectors.std(axis=0)
    assert np.allclose(manifest["measured"]["std"], np.where(std > 0, std, 1.0), rtol=1e-4)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["--network", "timm:test_resne"], "did you mean 'test_resnet'"),
        (["--network", "small_cnn"], "weights belongs to timm:NAME and torchvision:NAME"),
        (["--weights", "nowhere.pth"], "nowhere.pth' is not a file"),
        (["--weights", "stripes.toml"], "expected a file of tensors"),
        (["--network", "timm:test_vit"], "does not fit timm:test_vit"),
        (["--size", "0"], "expected a whole number from 1"),
        (["--to", "x.txt"], "expected the name of a task file"),
        (["--batch", "1"], "expected a whole number from 2"),
        (["--set", "data.sourc=x"], "did you mean 'source'"),
        (["--dtype", "float8"], "invalid choice"),
    ],
)
def test_bad_input_is_one_line(base: Path, changed: list[str], expected: str) -> None:
    if changed[1] in ("nowhere.pth", "stripes.toml", "x.txt"):
        changed = [changed[0], str(base / changed[1])]
    run = run_here(*arguments(base), *changed)
    assert (run.returncode, run.stdout) == (2, "")
    *before, error = run.stderr.splitlines()
    assert expected in error and all(line.startswith("caching arrays") for line in before), run.stderr
    assert not (base / "small.toml").exists() and not list((base / "cache").glob("features*"))


def test_numbers_that_the_type_cannot_hold_are_refused(base: Path) -> None:
    state = torch.load(base / "weights.pth", weights_only=True)
    state["layer4.0.bn2.weight"] *= 1e9
    torch.save(state, base / "weights.pth")
    run = run_here(*arguments(base))
    assert run.returncode == 2 and "float16 cannot hold; use --dtype float32" in run.stderr
    assert run_here(*arguments(base, "--dtype", "float32")).returncode == 0


def test_features_of_features_are_refused(base: Path) -> None:
    assert run_here(*arguments(base)).returncode == 0
    words = arguments(base)
    words[1] = str(base / "small.toml")
    run = run_here(*words)
    assert run.returncode == 2 and "its data are features already" in run.stderr
