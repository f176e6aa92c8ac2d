"""A method made ready for examination: a small network, hand-made batches, steps as the trainer takes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmark import rng
from benchmark.config import NetworkConfig
from benchmark.interface import Batch, Contestant, Derived, Method, Progress, Task
from benchmark.networks import build_network
from benchmark.prediction import Evidence, Prediction, Stored
from benchmark.schema import build
from benchmark.trainer import trained

NUM_CLASSES, NUM_TRAIN, SHAPE, BATCH = 5, 40, (3, 8, 8), 12
EPOCH = Progress(0, 4, 0, 4)


@dataclass(frozen=True)
class Candidate:
    """A label of a method, and the settings under which it is examined."""

    method: type[Contestant]
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> Any:
        warmup = {"warmup_epochs": 0} if "warmup_epochs" in {f.name for f in fields(self.method.Config)} else {}
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
    ) -> Method:
        """The method around a small network."""
        with torch.device(device):
            rng.reseed(0, "initialisation")
            network = build_network(NetworkConfig("small_cnn", widths, dropout), NUM_CLASSES, shape)
            if self.training_class().extra_outputs:
                network.add_outputs(self.training_class().extra_outputs, zero=False)
            return self.around(network, network.feature_dim)

    def around(self, network: nn.Module, feature_dim: int = 16) -> Method:
        rng.reseed(0, "method state")
        return self.training_class()(network, Task(NUM_CLASSES, NUM_TRAIN, feature_dim), self.config())

    def prediction(self) -> Stored:
        """What it says of a batch, as it would be stored."""
        if issubclass(self.method, Derived):
            return self.combined(random_logits())
        return stored(self.make().eval(), images())

    def combined(self, logits: list[Any]) -> Stored:
        if not issubclass(self.method, Derived):
            raise TypeError(f"{self.label} trains")
        members = self.method.members(self.config(), 0, num_epochs=20)
        predictions = [Prediction(logits[index % len(logits)]) for index in range(len(members))]
        held_out = random_logits(seed=9)
        validation = [
            Evidence(Prediction(held_out[i % len(held_out)]), np.arange(BATCH) % 3) for i in range(len(members))
        ]
        return self.method.combine(self.config(), predictions, validation).prediction


def random_logits(seed: int = 0) -> list[Any]:
    draws = np.random.default_rng(seed)
    return [draws.normal(size=(BATCH, NUM_CLASSES)) for _ in range(3)]


def images(start: int = 0, size: int = BATCH, shape: tuple[int, int, int] = SHAPE) -> Tensor:
    return torch.randn(size, *shape, generator=torch.Generator().manual_seed(start))


def make_batch(method: Method, size: int = BATCH, start: int = 0, labels: Tensor | None = None) -> Batch:
    views = tuple(images(start + 100 * view, size) for view in range(method.num_views))
    return Batch(views, torch.arange(size) % NUM_CLASSES if labels is None else labels, torch.arange(size) + start)


def take_step(method: Method, batch: Batch, optimizer: torch.optim.Optimizer, index: int = 0) -> Tensor:
    """One step as the trainer takes it; returns its loss."""
    progress = Progress(0, 4, index, 4)
    rng.reseed(0, "model noise", 0, index)
    step = method.training_step(batch, progress)
    optimizer.zero_grad()
    step.loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    rng.reseed(0, "method noise", 0, index)
    with torch.no_grad():
        method.after_step(batch, step.carry, progress)
    return step.loss.detach()


def train(method: Method, steps: int = 6, first: int = 0) -> Method:
    method.train()
    optimizer = torch.optim.SGD(trained(method), lr=0.05)
    for index in range(first, first + steps):
        take_step(method, make_batch(method, start=7 * (index % 4)), optimizer, index)
    return method


def stored(method: Method, batch: Tensor) -> Stored:
    with torch.no_grad():
        found = method.predict(batch)
    return Prediction(found.logits.numpy(), None, {name: value.numpy() for name, value in found.aux.items()})
