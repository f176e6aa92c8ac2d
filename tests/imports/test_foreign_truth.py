"""Measures of imported runs equal those of scikit-learn and torchmetrics, on outputs of real classifiers.

Where definitions differ, docs/measures.md says how, and the difference is held here.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    auc,
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
    roc_curve,
)
from torchmetrics.functional.classification import multiclass_calibration_error

import benchmark as sb
from tests.conftest import ROOT

COUNTS = Path(os.environ.get("SELBENCH_DATA", "data")) / "human_labels" / "cifar10h.npz"
"""Label counts of about 50 people per CIFAR-10 image, where a developer has them among the data sets."""
Outputs = tuple[NDArray[np.float64], NDArray[np.int64]]


def forest() -> Outputs:
    """Votes of 100 trees: many ties, and probabilities of exactly 0."""
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(100, random_state=0, max_depth=6).fit(X[:400], y[:400])
    return model.predict_proba(X[400:]), y[400:]


def logistic() -> Outputs:
    """Softmax outputs without ties."""
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=2000, C=0.01).fit(X[:300] / 16, y[:300])
    return model.predict_proba(X[300:] / 16), y[300:]


@pytest.fixture(scope="module", params=[forest, logistic])
def outputs(request: pytest.FixtureRequest) -> Iterator[Outputs]:
    yield request.param()


@pytest.fixture(scope="module")
def measures(outputs: Outputs) -> dict[str, float]:
    p, y = outputs
    return sb.score(labels=y, probabilities=p).measures


def test_accuracy(outputs: Outputs, measures: dict[str, float]) -> None:
    p, y = outputs
    assert measures["accuracy"] == pytest.approx(accuracy_score(y, p.argmax(1)))


def test_auroc_of_failures(outputs: Outputs, measures: dict[str, float]) -> None:
    """Exactly, ties included: they count half in both."""
    p, y = outputs
    assert measures["auroc"] == pytest.approx(roc_auc_score(p.argmax(1) == y, p.max(1)), abs=1e-12)


def test_aupr_of_failures_and_fpr95(outputs: Outputs, measures: dict[str, float]) -> None:
    """Exactly, ties included: a tied block is one threshold in both."""
    p, y = outputs
    wrong, confidence = p.argmax(1) != y, p.max(1)
    assert measures["aupr"] == pytest.approx(average_precision_score(wrong, -confidence), abs=1e-12)
    fpr, tpr, _ = roc_curve(~wrong, confidence, drop_intermediate=False)
    assert measures["fpr95"] == pytest.approx(fpr[np.argmax(tpr >= 0.95)])


def test_aurc_is_the_mean_of_the_risks(outputs: Outputs, measures: dict[str, float]) -> None:
    """By sklearn's mean over sorted predictions, one coverage at a time; ties by random orders, averaged."""
    p, y = outputs
    wrong, random = p.argmax(1) != y, np.random.default_rng(0)
    found = []
    for _ in range(200):
        order = np.lexsort((random.random(len(y)), -p.max(1)))
        found.append((np.cumsum(wrong[order]) / np.arange(1, len(y) + 1)).mean())
    assert measures["aurc"] == pytest.approx(np.mean(found), rel=2e-3)


def test_the_trapezoid_of_sklearn_is_another_area(outputs: Outputs) -> None:
    """`auc` of the same curve leaves out the first 1/n: the page says by how much they differ."""
    p, y = outputs
    coverage, risk = sb.metrics.risk_curve(p.max(1), p.argmax(1) != y)
    area, mean = auc(coverage, risk), sb.metrics.aurc(p.max(1), p.argmax(1) != y)
    assert mean - area == pytest.approx((risk[0] + risk[-1]) / (2 * len(y)), abs=1e-12)


def test_brier(outputs: Outputs, measures: dict[str, float]) -> None:
    """sklearn's multi-class Brier score is the sum over classes, too."""
    p, y = outputs
    assert measures["brier"] == pytest.approx(brier_score_loss(y, p, scale_by_half=False))


def test_nll(outputs: Outputs, measures: dict[str, float]) -> None:
    """Equal where no true class has probability 0. There sklearn counts 36 (float64) and the suite 87."""
    p, y = outputs
    zero = (p[np.arange(len(y)), y] == 0).sum()
    here, there = -np.log(np.finfo(np.float32).tiny), -np.log(np.finfo(np.float64).eps)
    assert measures["nll"] == pytest.approx(log_loss(y, p) + zero * (here - there) / len(y))


@pytest.mark.parametrize("bins", [10, 15])
def test_ece(bins: int, outputs: Outputs) -> None:
    """Equal unless a confidence lies on the edge of a bin: the suite's bins are (lo, hi], torchmetrics' [lo, hi)."""
    p, y = outputs
    confidence, wrong = p.max(1), p.argmax(1) != y
    inside = np.abs(confidence * bins - np.round(confidence * bins)) > 1e-6
    ours = sb.metrics.ece(confidence[inside], wrong[inside], bins)
    theirs = multiclass_calibration_error(
        torch.tensor(p[inside]), torch.tensor(y[inside]), num_classes=10, n_bins=bins, norm="l1"
    )
    assert ours == pytest.approx(float(theirs), abs=1e-6)


def test_on_the_edge_of_a_bin_definitions_differ() -> None:
    p = np.array([[0.6, 0.4], [0.6, 0.4], [0.65, 0.35], [0.65, 0.35]])
    y = np.array([0, 0, 1, 1])
    ours = sb.metrics.ece(p.max(1), p.argmax(1) != y, 10)
    theirs = multiclass_calibration_error(torch.tensor(p), torch.tensor(y), num_classes=2, n_bins=10, norm="l1")
    assert ours == pytest.approx((0.8 + 1.3) / 4)
    assert float(theirs) == pytest.approx(abs(2 - 2.5) / 4)


@pytest.mark.skipif(not COUNTS.is_file(), reason="the human label counts are not here")
def test_human_label_counts_as_a_classifier() -> None:
    """What the people say of CIFAR-10, as probabilities: few values, and nearly all of them tied at 1."""
    with np.load(COUNTS) as stored:
        counts = next(array for array in (stored[name] for name in stored) if array.shape == (10_000, 10))
    p = counts / counts.sum(axis=1, keepdims=True)
    random = np.random.default_rng(0)
    y = np.where(random.random(len(p)) < 0.9, p.argmax(1), random.integers(0, 10, len(p)))
    found = sb.score(labels=y, probabilities=p)
    assert found.measures["auroc"] == pytest.approx(roc_auc_score(p.argmax(1) == y, p.max(1)), abs=1e-12)
    assert found.records[0].score("SR").top_ties == pytest.approx((p.max(1) == 1).mean())


def test_the_page_names_every_measure() -> None:
    page = (ROOT / "docs" / "measures.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    scored = sb.score(labels=[0, 1, 1], logits=np.eye(2)[[0, 1, 0]] * 3)
    names = {re.sub(r"cost_\d+", "cost_10", name.partition("@")[0]) for name in scored.measures}
    assert names <= listed
    assert "docs/measures.md" in (ROOT / "README.md").read_text()
