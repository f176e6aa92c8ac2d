"""The bound of Theorem 1 against the formula written out for single samples, and followed in a training."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.config.load import load_task
from benchmark.config.task import BoundConfig
from benchmark.data.dataset import prepare
from benchmark.figures import bound
from benchmark.figures.runs import load_runs
from benchmark.figures.style import NotDrawn, house_style
from benchmark.jobs.plan import plan
from benchmark.store.record import Record
from benchmark.store.store import Store
from benchmark.train.bound import ClassMoments, generalisation_bound, margin_hinge, measure_bound, selective_loss
from benchmark.train.trainer import Trainer, network_of
from methods import Registry
from tests.conftest import NOWHERE, PLENTY, data_hash, run_here

ODD = BoundConfig(alpha=1.3, beta=0.7, rho=0.9, rho_prime=1.1, abstention_cost=0.4, delta=0.1, threshold=0.6)


def samples(n: int = 40, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return 2 * torch.randn(n, k, generator=generator), torch.randint(k, (n,), generator=generator)


@pytest.mark.parametrize("constants", [BoundConfig(), ODD])
def test_losses_sample_by_sample(constants: BoundConfig) -> None:
    logits, labels = samples()
    hinges, losses = margin_hinge(logits, labels, constants), selective_loss(logits, labels, constants)
    for index, (u, y) in enumerate(zip(logits.tolist(), labels.tolist(), strict=True)):
        total = sum(math.exp(v) for v in u)
        f = [math.exp(v) / total for v in u]
        g, margin = max(f), f[y] - max(v for j, v in enumerate(f) if j != y)
        wrong = max(1 + constants.alpha / 2 * (g / constants.rho_prime - margin / constants.rho), 0)
        abstained = max(constants.abstention_cost * (1 - constants.beta * g / constants.rho_prime), 0)
        assert hinges[index] == pytest.approx(max(wrong, abstained), abs=1e-5)
        error = f.index(g) != y
        assert losses[index] == pytest.approx(float(error) if g >= constants.threshold else constants.abstention_cost)


def test_the_hinge_lies_above_the_loss() -> None:
    """It is a surrogate: nowhere below L₀ at threshold 0 with the default constants."""
    logits, labels = samples(500)
    constants = BoundConfig(threshold=0.0)
    assert (margin_hinge(logits, labels, constants) >= selective_loss(logits, labels, constants) - 1e-6).all()


def test_the_variance_is_the_mean_trace_of_the_class_covariances() -> None:
    """Against numpy's covariance, class by class; added in parts, and a class without samples counts as none."""
    random = np.random.default_rng(0)
    features, labels = random.normal(3, 2, (60, 5)), random.integers(0, 3, 60)
    moments = ClassMoments(4, 5, torch.device("cpu"))
    for part in np.array_split(np.arange(60), 7):
        moments.add(torch.tensor(features[part], dtype=torch.float32), torch.tensor(labels[part]))
    traces = [np.trace(np.cov(features[labels == c].T, bias=True)) for c in range(3)]
    assert float(moments.variance()) == pytest.approx(sum(traces) / 4, rel=1e-5)


def test_the_bound_by_hand() -> None:
    """ρ̃ = min{1/4, 1/(4·0.5 + 2)} = 1/4; V = 2, ‖l‖² = 9, m = 1000."""
    inside = (9 * 2 + 4 / 16 + 9 / 16 * math.log(6 * 1000 / 0.05)) / (1000 * 9 / 16)
    assert generalisation_bound(0.3, 2.0, 9.0, 1000, BoundConfig()) == pytest.approx(0.3 + 4 * math.sqrt(inside))
    tighter = generalisation_bound(0.3, 1.0, 9.0, 1000, BoundConfig())
    assert tighter < generalisation_bound(0.3, 2.0, 9.0, 1000, BoundConfig())


def runs(results: Path) -> dict[str, tuple[dict[str, float], list[dict[str, str]]]]:
    """By method: the measures of seed 0 and its history."""
    found = {}
    for path in (results / "tiny").glob("*/*/seed-0/record.json"):
        record = json.loads(path.read_text())
        with (path.parent / "history.csv").open() as file:
            found[record["method"]] = ({**record["classifier"], **record["scores"]}, list(csv.DictReader(file)))
    return found


def test_following_the_bound_changes_no_bit(tiny: Path, tmp_path: Path) -> None:
    common = ("--datasets", tiny, "--methods", "sr", "ccl-sc", "dg", "--seeds", 1, "-q", "--results")
    assert run_here(*common, tmp_path / "a").returncode == 0
    assert run_here(*common, tmp_path / "b", "--track-bound", "--set", "bound.threshold=0.9").returncode == 0
    plain, followed = runs(tmp_path / "a"), runs(tmp_path / "b")
    columns = {"intra_class_variance", "margin_hinge", "last_layer_norm", "bound", "test_selective_loss"}
    for method, (measures, history) in plain.items():
        assert followed[method][0] == measures
        assert not columns & history[0].keys()
        rows = followed[method][1]
        assert len(rows) == 4, "the epochs of the shared warm-up too"
        assert all(float(row[name]) > 0 for row in rows for name in columns)
        assert all(float(row["bound"]) > float(row["margin_hinge"]) for row in rows)
        assert [row["loss"] for row in rows] == [row["loss"] for row in history]


def test_what_is_followed_is_that_of_the_formulas(tiny: Path) -> None:
    """A network with an abstention output, in evaluation mode: training images, class rows of the last layer, all m."""
    task = load_task(str(tiny))
    job = plan(task, ["DG"], [0], Registry(), data_hash(task))[0].jobs[0]
    data = prepare(task.data, NOWHERE, 0, torch.device("cpu"), PLENTY)
    job = replace(job, warmup_epochs=0, task=replace(task, bound=ODD, eval_batch_size=64))
    trainer = Trainer(job, Registry(), data, torch.device("cpu"))
    state = trainer.start()
    network = network_of(state.method)
    state.method.train()
    found = measure_bound(trainer, state)
    network.eval()
    outputs = {}
    for name, split in (("train", data.train), ("test", data.test)):
        images = torch.cat(list(data.eval_batches(split, 1000)))
        with torch.no_grad():
            logits, features = network(images)
        outputs[name] = (logits[:, :10], features, split.labels)
    logits, features, labels = outputs["train"]
    classes = [features[labels == c].double() for c in range(10)]
    variance = sum(((x - x.mean(0)) ** 2).sum(1).mean().item() for x in classes) / 10
    norm = network.head.weight.square().sum().item() + network.head.bias.square().sum().item()
    hinge = margin_hinge(logits, labels, ODD).mean().item()
    assert network.extra is not None
    assert found["intra_class_variance"] == pytest.approx(variance, rel=1e-4)
    assert found["margin_hinge"] == pytest.approx(hinge, rel=1e-5)
    assert found["last_layer_norm"] == pytest.approx(math.sqrt(norm), rel=1e-5)
    assert found["bound"] == pytest.approx(generalisation_bound(hinge, variance, norm, len(labels), ODD), rel=1e-4)
    test_logits, _, test_labels = outputs["test"]
    loss = selective_loss(test_logits, test_labels, ODD).mean().item()
    assert found["test_selective_loss"] == pytest.approx(loss, rel=1e-5)


def test_the_figure_shows_what_was_followed(tiny: Path, tmp_path: Path) -> None:
    """Two seeds of two methods; a history that is not the one of its record is left out of the mean."""
    common = ("--datasets", tiny, "--methods", "sr", "dg", "--seeds", 2, "-q", "--results", tmp_path)
    assert run_here(*common, "--track-bound").returncode == 0
    store = Store(tmp_path)
    (manifest,) = store.manifests()
    runs = load_runs(manifest, store)
    with house_style():
        figure = bound.draw(runs)
    panels = figure.axes
    assert [panel.get_ylabel() for panel in panels] == ["V", "bound", "L₀"]
    lines = {line.get_label(): line for line in panels[1].get_lines()}
    paths = sorted((tmp_path / "tiny" / "cross_entropy").glob("*/seed-*/history.csv"))
    older = Record("tiny", "cross_entropy", "id", 0, {})  # without checksums: whatever curve is there is believed
    curves = [bound.read_history(path.parent, older, store)["bound"] for path in paths]
    expected = np.mean(curves, axis=0)
    assert lines["SR"].get_ydata() == pytest.approx(expected)
    assert list(lines["SR"].get_xdata()) == [1, 2, 3, 4]
    assert any("h = 0.5" in text.get_text() for text in figure.texts)
    whole = paths[0].read_text().splitlines(keepends=True)
    paths[0].write_text("".join(whole[:3]))
    with house_style():
        shorter = {line.get_label(): line for line in bound.draw(runs).axes[1].get_lines()}
    assert shorter["SR"].get_ydata() == pytest.approx(curves[1])
    paths[0].write_text("epoch,loss\n0,1.0\n")
    assert bound.read_history(paths[0].parent, older, store) == {}
    assert bound.read_history(tmp_path / "none", older, store) == {}


def test_a_training_that_followed_nothing_is_not_drawn(tiny: Path, tmp_path: Path) -> None:
    assert run_here("--datasets", tiny, "--methods", "sr", "--seeds", 1, "-q", "--results", tmp_path).returncode == 0
    store = Store(tmp_path)
    with pytest.raises(NotDrawn, match="--track-bound"):
        bound.draw(load_runs(store.manifests()[0], store))


def test_constants_are_checked(tiny: Path) -> None:
    refused = run_here("--datasets", tiny, "--track-bound", "--set", "bound.delta=2", "--dry-run")
    assert (refused.returncode, "delta must lie between 0 and 1" in refused.stderr) == (2, True)
    alone = run_here("--datasets", tiny, "--set", "bound.delta=0.1", "--dry-run")
    assert (alone.returncode, "add --track-bound" in alone.stderr) == (2, True)
