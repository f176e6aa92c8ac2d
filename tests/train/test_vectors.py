"""Whatever trains on images trains on vectors too, and a linear network is logistic regression."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.store.store import Store
from methods import Registry
from tests.conftest import TINY, run_here
from tests.train.test_speed_settings import assert_resumes, make_job

IMAGES = TINY[TINY.index("[data]") : TINY.index("[optimizer]")]
VECTORS = """
[data]
source = "digits-vectors"
val = 0.1
train_images = 170
test_images = 200

[network]
name = "mlp"
widths = [16]
dropout = 0.3

[augment]
noise = 0.1
feature_dropout = 0.1

"""
CPU = torch.device("cpu")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """The tiny task with vectors in the place of images, and others as its outliers."""
    text = TINY.replace(IMAGES, VECTORS)
    (tmp_path / "others.toml").write_text(text)
    path = tmp_path / "small-vectors.toml"
    path.write_text(text.replace("[data]", '[data]\noutliers = "./others.toml"'))
    return path


def test_every_method_and_every_score(vectors: Path, tmp_path: Path) -> None:
    short = ("--set", "method.confid_net.epochs=2", "--set", "method.sele.epochs=2", "--set", "data.train_images=80")
    words = ("--datasets", vectors, "--methods", "all", "--seeds", 1, "--scores", "all", "--keep-features", *short)
    result = run_here(*words, "--results", tmp_path / "r")
    assert result.returncode == 0, result.stderr
    assert "stays empty" not in result.stderr
    (manifest,) = Store(tmp_path / "r").manifests()
    registry = Registry()
    labels = {label for name in registry.names() for label in registry.get(name).labels}
    done = {entry.label for entry in manifest.entries if entry.seeds}
    assert labels == done


@pytest.mark.parametrize(
    "cells", [("sr", "--with", "mixup", "sam", "swa"), ("sat+em", "ccl-sc", "--with", "regmixup", "cosine", "ema")]
)
def test_ingredients(vectors: Path, tmp_path: Path, cells: tuple[str, ...]) -> None:
    result = run_here("--datasets", vectors, "--seeds", 1, "--methods", *cells, "--results", tmp_path / "r")
    assert result.returncode == 0, result.stderr
    (manifest,) = Store(tmp_path / "r").manifests()
    labels = {record.label for record in Store(tmp_path / "r").records("small-vectors")}
    assert labels >= {entry.label for entry in manifest.entries}


@pytest.mark.parametrize("label", ["SAT+EM", "CCL-SC"])
def test_a_killed_job_ends_in_the_same_bits(vectors: Path, tmp_path: Path, label: str) -> None:
    assert_resumes(make_job(vectors, label), tmp_path, CPU)


@pytest.mark.parametrize("source", ["file", "memory"])
def test_the_linear_network_is_logistic_regression(tmp_path: Path, source: str) -> None:
    """The mean accuracy of three seeds is within a percentage point of scikit-learn's on the same training vectors."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    values, labels = load_breast_cancer(return_X_y=True)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(labels))
    train, test = order[:200], order[200:]
    task, words = "breast-cancer", ["--set", "network.name=linear", "--set", "data.val=0"]
    if source == "file":
        arrays = {"train_vectors": values[train], "train_labels": labels[train]}
        np.savez(tmp_path / "own.npz", **arrays, test_vectors=values[test], test_labels=labels[test])
        task, head = str(tmp_path / "own.toml"), 'extends = "breast-cancer"\ntitle = "own"\n'
        Path(task).write_text(f'{head}[data]\nsource = "vectors"\npath = "own.npz"\n')
    result = run_here("--datasets", task, "--methods", "sr", "--seeds", 3, *words, "--results", tmp_path / "r")
    assert result.returncode == 0, result.stderr
    records = Store(tmp_path / "r").records(Path(task).stem)
    found = [record.measures.classifier.accuracy for record in records]
    scaler = StandardScaler().fit(values[train])
    model = LogisticRegression(C=10, max_iter=1000).fit(scaler.transform(values[train]), labels[train])
    assert len(found) == 3
    assert np.mean(found) == pytest.approx(model.score(scaler.transform(values[test]), labels[test]), abs=0.01)
