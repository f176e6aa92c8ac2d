"""Make a method ready for examination: a small network, hand-made batches, steps as the trainer takes them."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.base.schema import build
from benchmark.config.training import NetworkConfig
from benchmark.data import streams
from benchmark.interface import Batch, Contestant, Derived, Method, Progress, Task, Validation
from benchmark.measure.prediction import Evidence, Prediction, Stored
from benchmark.train.networks import build_network
from benchmark.train.steps.step import take_step
from benchmark.train.trainer import trained_parameters

NUM_CLASSES, NUM_TRAIN, SHAPE, BATCH = 5, 40, (3, 8, 8), 12
MOVING = ("running_mean", "running_var", "num_batches_tracked")
EPOCH = Progress(0, 4, 0, 4)
SMALL = {"queue_size": 6, "hidden": 8, "passes": 4}
"""Settings, of methods that have them, with which queues fill within a few steps and nothing takes long."""


@dataclass(frozen=True)
class Candidate:
    """A label of a method, and the settings under which it is examined."""

    method: type[Contestant]
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> Any:
        warmup = {"warmup_epochs": 0} if "warmup_epochs" in setting_names(self.method) else {}
        return build(self.method.Config, {**warmup, **self.method.labels[self.label], **self.settings}, self.label)

    def training_class(self) -> type[Method]:
        if not issubclass(self.method, Method):
            raise TypeError(f"{self.label} trains nothing")
        return self.method

    def make(
        self,
        device: str = "cpu",
        dropout: float = 0.0,
        widths: tuple[int, ...] = (8, 16),
        shape: tuple[int, int, int] = SHAPE,
        constant: bool = False,
    ) -> Method:
        """Return the method around a small network; a `constant` one says the first class of everything."""
        with torch.device(device):
            streams.reseed(0, "initialisation")
            network = build_network(NetworkConfig("small_cnn", widths, dropout), NUM_CLASSES, shape)
            if constant:
                nn.init.zeros_(network.head.weight)
                network.head.bias.data.copy_(30 * torch.eye(NUM_CLASSES)[0])
            if self.training_class().extra_outputs:
                network.add_outputs(self.training_class().extra_outputs, zero=constant)
            streams.reseed(0, "method state")
            return self.training_class()(network, Task(NUM_CLASSES, NUM_TRAIN, network.feature_dim), self.config())

    def prediction(self) -> Stored:
        """Return what it says of a batch, as it would be stored."""
        if issubclass(self.method, Derived):
            return self.combined(random_logits())
        return stored(self.make().eval(), images())

    def combined(self, logits: list[Any]) -> Stored:
        if not issubclass(self.method, Derived):
            raise TypeError(f"{self.label} trains")
        members = range(len(self.method.members(self.config(), 0, num_epochs=20)))
        held_out, labels = random_logits(seed=9), np.arange(BATCH) % 3
        predictions = [Prediction(logits[index % len(logits)]) for index in members]
        validation = [Evidence(Prediction(held_out[index % len(held_out)]), labels) for index in members]
        return self.method.combine(self.config(), predictions, validation).prediction


def setting_names(method: type[Contestant]) -> set[str]:
    return {field.name for field in fields(method.Config)}


def small(method: type[Contestant], label: str) -> Candidate:
    """Return a label with small settings."""
    return Candidate(method, label, {name: SMALL[name] for name in SMALL if name in setting_names(method)})


def random_logits(seed: int = 0) -> list[Any]:
    draws = np.random.default_rng(seed)
    return [draws.normal(size=(BATCH, NUM_CLASSES)) for _ in range(3)]


def images(start: int = 0, size: int = BATCH, shape: tuple[int, int, int] = SHAPE) -> Tensor:
    return torch.randn(size, *shape, generator=torch.Generator().manual_seed(start))


def make_batch(method: Method, size: int = BATCH, start: int = 0, labels: Tensor | None = None) -> Batch:
    views = tuple(images(start + 100 * view, size) for view in range(method.num_views))
    labels = torch.arange(size) % NUM_CLASSES if labels is None else labels
    return with_outliers(Batch(views, labels, torch.arange(size) + start, stream=start), method)


def with_outliers(batch: Batch, method: Method) -> Batch:
    """Return a batch with outliers beside it, if the method needs some."""
    if not method.needs_outliers:
        return batch
    count, *shape = batch.images.shape
    return replace(batch, outliers=images(50, count, (shape[0], shape[1], shape[2])))


def moved(batch: Batch, device: torch.device, dtype: torch.dtype = torch.float32) -> Batch:
    views = tuple(view.to(device, dtype) for view in batch.views)
    outliers = None if batch.outliers is None else batch.outliers.to(device, dtype)
    return replace(
        batch, views=views, labels=batch.labels.to(device), indices=batch.indices.to(device), outliers=outliers
    )


def step_loss(method: Method, optimizer: torch.optim.Optimizer, batch: Batch, index: int = 0) -> Tensor:
    """Take one step as the trainer does, and return its loss."""
    return take_step(method, optimizer, batch, 0, Progress(0, 4, index, 4)).loss.detach()


def train(method: Method, steps: int = 6, first: int = 0) -> Method:
    """Take steps and end an epoch, as the trainer does."""
    method.train()
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.05)
    for index in range(first, first + steps):
        step_loss(method, optimizer, make_batch(method, start=7 * (index % 4)), index)
    method.eval()
    with torch.no_grad():
        validation = Validation(method.predict(images(3)), torch.arange(BATCH) % NUM_CLASSES)
        method.after_epoch(EPOCH, validation if method.needs_validation else None)
    return method.train()


def stored(method: Method, batch: Tensor) -> Stored:
    with torch.no_grad():
        found = method.predict(batch)
    return Prediction(found.logits.numpy(), None, {name: value.numpy() for name, value in found.aux.items()})


def loss_of(method: Method, batch: Batch) -> Tensor:
    streams.reseed(0, "model noise")
    return copy.deepcopy(method).training_step(batch, EPOCH).loss.detach()


def part(batch: Batch, rows: Tensor) -> Batch:
    views = tuple(view[rows] for view in batch.views)
    outliers = None if batch.outliers is None else batch.outliers[rows]
    return replace(batch, views=views, labels=batch.labels[rows], indices=batch.indices[rows], outliers=outliers)


def differing(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> list[str]:
    return [name for name in {**a, **b} if name not in a or name not in b or not torch.equal(a[name], b[name])]


def own_state(method: Method) -> dict[str, Tensor]:
    """Return everything but the BatchNorm statistics of trained modules, which a forward pass moves."""
    children = method.named_children()
    learnt = tuple(f"{name}." for name, module in children if any(p.requires_grad for p in module.parameters()))
    return {
        name: value.clone()
        for name, value in method.state_dict().items()
        if not (name.startswith(learnt) and name.endswith(MOVING))
    }
