"""Every method of the registry through the same battery. Adding a method needs no edit here."""

import copy
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmark import rng
from benchmark.augment import augment, normalise
from benchmark.config import AugmentConfig, NetworkConfig
from benchmark.errors import UserError
from benchmark.interface import Batch, Method, Progress, Task
from benchmark.networks import build_network
from benchmark.prediction import Prediction
from benchmark.schema import build
from benchmark.trainer import trained
from methods import Registry
from tests.sync_guard import HostSync, SyncGuard

K, N_TRAIN, SHAPE = 5, 40, (3, 8, 8)
SETTINGS = {"warmup_epochs": 0, "queue_size": 6}
REGISTRY = Registry()
CASES = [pytest.param(name, label, id=label) for name in REGISTRY.names() for label in REGISTRY.get(name).labels]
every_method = pytest.mark.parametrize(("name", "label"), CASES)
PROGRESS = Progress(0, 4, 0, 4)


def make(name: str, label: str, device: str = "cpu", dropout: float = 0.0) -> Method:
    """A method around a small network, its state filled by nothing yet."""
    method_class = REGISTRY.get(name)
    fields = {f for f in SETTINGS if f in method_class.Config.__dataclass_fields__}
    config = build(method_class.Config, {**{f: SETTINGS[f] for f in fields}, **method_class.labels[label]}, label)
    with torch.device(device):
        rng.reseed(0, "initialisation")
        network = build_network(NetworkConfig("small_cnn", (8, 16), dropout), K, SHAPE)
        if method_class.extra_outputs:
            network.add_outputs(method_class.extra_outputs, zero=False)
        return method_class(network, Task(K, N_TRAIN, network.feature_dim), config)


def make_batch(size: int = 12, start: int = 0, views: int = 1, labels: Tensor | None = None) -> Batch:
    g = torch.Generator().manual_seed(start)
    images = tuple(torch.randn(size, *SHAPE, generator=g) for _ in range(views))
    return Batch(images, torch.arange(size) % K if labels is None else labels, torch.arange(start, start + size))


def step(method: Method, batch: Batch, optimizer: torch.optim.Optimizer, index: int) -> Tensor:
    """One step as the trainer takes it."""
    progress = Progress(0, 4, index, 4)
    rng.reseed(0, "model noise", 0, index)
    result = method.training_step(batch, progress)
    optimizer.zero_grad()
    result.loss.backward()
    optimizer.step()
    rng.reseed(0, "method noise", 0, index)
    with torch.no_grad():
        method.after_step(batch, result.carry, progress)
    return result.loss.detach()


def train(method: Method, steps: int = 6, first: int = 0) -> Method:
    method.train()
    optimizer = torch.optim.SGD(trained(method), lr=0.05)
    for index in range(first, first + steps):
        step(method, make_batch(start=7 * (index % 4), views=method.num_views), optimizer, index)
    return method


def own_state(method: Method) -> dict[str, Tensor]:
    """Everything but the BatchNorm statistics of the trained network."""
    moving = ("running_mean", "running_var", "num_batches_tracked")
    return {
        name: value.clone()
        for name, value in method.state_dict().items()
        if not (name.startswith("network.") and name.endswith(moving))
    }


def assert_equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


@every_method
def test_says_what_it_is(name: str, label: str) -> None:
    method = REGISTRY.get(name)
    assert method.title
    assert re.search(r"(19|20)\d\d", method.reference), "names its paper's year"


@every_method
def test_refuses_an_unknown_option(name: str, label: str) -> None:
    with pytest.raises(UserError, match="nonsense"):
        build(REGISTRY.get(name).Config, {"nonsense": 1}, label)


@every_method
def test_loss_is_finite_and_reaches_the_whole_network(name: str, label: str) -> None:
    method = train(make(name, label))
    result = method.training_step(make_batch(views=method.num_views), PROGRESS)
    assert result.loss.shape == ()
    assert torch.isfinite(result.loss)
    assert all(value.shape == () and not value.requires_grad for value in result.logs.values())
    for parameter in trained(method):
        parameter.grad = None
    result.loss.backward()
    for parameter_name, parameter in method.network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert torch.isfinite(parameter.grad).all()


@every_method
def test_training_step_writes_no_state(name: str, label: str) -> None:
    method = train(make(name, label))
    before = own_state(method)
    method.training_step(make_batch(views=method.num_views), PROGRESS)
    assert_equal(own_state(method), before)


@every_method
def test_training_is_deterministic_also_with_dropout(name: str, label: str) -> None:
    runs = [train(make(name, label, dropout=0.5)).state_dict() for _ in range(2)]
    assert_equal(*runs)


@every_method
def test_state_dict_is_the_whole_state(name: str, label: str) -> None:
    first = train(make(name, label))
    second = make(name, label)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert_equal(train(first, 3, first=6).state_dict(), train(second, 3, first=6).state_dict())


@every_method
def test_prediction_has_k_columns_and_does_not_depend_on_the_batch(name: str, label: str) -> None:
    method = train(make(name, label, dropout=0.5)).eval()
    images = torch.cat([make_batch(start=i).images for i in range(3)])
    with torch.no_grad():
        whole = method.predict(images)
        parts = [method.predict(part) for part in images.split(7)]
    assert whole.logits.shape == (len(images), K)
    torch.testing.assert_close(torch.cat([p.logits for p in parts]), whole.logits, atol=1e-5, rtol=1e-4)
    for key in whole.aux:
        torch.testing.assert_close(torch.cat([p.aux[key] for p in parts]), whole.aux[key], atol=1e-5, rtol=1e-4)


def as_stored(prediction: Prediction[Tensor]) -> Prediction[Any]:
    return Prediction(prediction.logits.numpy(), None, {k: v.numpy() for k, v in prediction.aux.items()})


@every_method
def test_scores_are_finite_one_per_image_and_pure(name: str, label: str) -> None:
    method = make(name, label).eval()
    with torch.no_grad():
        prediction = as_stored(method.predict(make_batch().images))
    scores = method.scores(prediction)
    assert "SR" in scores
    for confidence in scores.values():
        assert confidence.shape == (12,)
        assert np.isfinite(confidence).all()
    again = type(method).scores(prediction)
    assert list(again) == list(scores)
    assert all((again[key] == scores[key]).all() for key in scores)


@every_method
def test_larger_scores_mean_more_confident(name: str, label: str) -> None:
    """Hand-made: the class logits grow apart, and every further output speaks less and less for abstaining."""
    with torch.no_grad():
        keys = make(name, label).eval().predict(make_batch().images).aux
    gap = np.arange(1.0, 5.0)
    logits = gap[:, None] * np.eye(K)[0]
    scores = REGISTRY.get(name).scores(Prediction(logits, None, dict.fromkeys(keys, -gap)))
    for key, confidence in scores.items():
        assert (np.diff(confidence) > 0).all(), key


@every_method
def test_order_within_a_batch_does_not_matter(name: str, label: str) -> None:
    method = train(make(name, label))
    batch = make_batch(views=method.num_views)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    shuffled = Batch(tuple(view[order] for view in batch.views), batch.labels[order], batch.indices[order])
    losses = [copy.deepcopy(method).training_step(b, PROGRESS).loss for b in (batch, shuffled)]
    torch.testing.assert_close(losses[0], losses[1], atol=1e-5, rtol=1e-5)


class Constant(nn.Module):
    """Puts its whole weight on one output."""

    def __init__(self, outputs: int, favourite: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(30 * torch.eye(outputs)[favourite])

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = images.flatten(1)[:, :16] + 0 * self.logits.sum()
        return self.logits.expand(len(images), -1) + 0 * features.sum(), features


@every_method
@pytest.mark.parametrize("labels", ["all correct", "all wrong"])
def test_one_class_nothing_wrong_or_nothing_right(name: str, label: str, labels: str) -> None:
    method = make(name, label)
    method.network = Constant(K + method.extra_outputs, favourite=0)
    if hasattr(method, "key"):
        method.key = copy.deepcopy(method.network)
    batch = make_batch(labels=torch.full((12,), 0 if labels == "all correct" else 1), views=method.num_views)
    optimizer = torch.optim.SGD(method.network.parameters(), lr=0.01)
    for index in range(4):
        assert torch.isfinite(step(method, batch, optimizer, index))
    assert all(torch.isfinite(p.grad).all() for p in method.network.parameters())


@every_method
@pytest.mark.parametrize("size", [2, 3])
def test_odd_small_batches(name: str, label: str, size: int) -> None:
    method = make(name, label)
    optimizer = torch.optim.SGD(trained(method), lr=0.01)
    assert torch.isfinite(step(method, make_batch(size, views=method.num_views), optimizer, 0))


@every_method
def test_no_host_sync_in_a_step(name: str, label: str) -> None:
    """On the meta device there are no values to wait for: whatever needs one raises."""
    method = make(name, label, device="meta", dropout=0.5).train()
    optimizer = torch.optim.SGD(trained(method), lr=0.05, momentum=0.9)
    batch = make_batch(views=method.num_views)
    batch = Batch(tuple(v.to("meta") for v in batch.views), batch.labels.to("meta"), batch.indices.to("meta"))
    with SyncGuard():
        for index in range(2):
            step(method, batch, optimizer, index)


def test_no_host_sync_in_the_augmentations() -> None:
    images = torch.empty(8, 3, 32, 32, dtype=torch.uint8, device="meta")
    with SyncGuard():
        out = augment(images, AugmentConfig(crop_padding=4, flip=True), torch.Generator())
        out = normalise(out, torch.empty(3, device="meta"), torch.empty(3, device="meta"))
    assert out.shape == images.shape


def mask_assignment(values: Tensor) -> None:
    values[values > 0] = values[:1]


SYNCING = {
    "item": lambda t: t.sum().item(),
    "mask": lambda t: t[t > 0],
    "branch": lambda t: bool(t.sum() > 0),
    "mask assignment": mask_assignment,
    "index from the host": lambda t: t[torch.tensor([0, 1])],
    "nonzero": lambda t: t.nonzero(),
    "count": lambda t: t.long().bincount(),
}


@pytest.mark.parametrize("what", SYNCING)
def test_the_guard_itself_notices(what: str) -> None:
    values = torch.empty(4, device="meta")
    with pytest.raises((HostSync, RuntimeError, NotImplementedError)), SyncGuard():
        SYNCING[what](values)
