"""What a training step costs beside its mathematics."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader

from benchmark.config.load import load_task
from benchmark.interface import Batch
from benchmark.jobs.plan import label_owners, plan
from benchmark.train.steps.optimizers import OPTIMIZERS
from benchmark.train.trainer import State, Trainer
from methods import Registry
from methods._contrastive import csc_loss
from methods._queues import Keys
from tests.speed.data import Pictured
from tests.speed.methods import Runner, make_runner
from tests.speed.timing import (
    CPU,
    PLENTY,
    Premade,
    Row,
    anonymous_memory,
    data_set,
    in_turns,
    median_ratio,
    noise,
    peak_memory,
)

REGISTRY = Registry()
PAIRS = (64, 512, 3000, 100)
"""Batch, features, queue and classes at which the contrastive loss is measured by itself."""


def small_trainer(count: int, *settings: str, label: str = "SR") -> tuple[Trainer, State]:
    """A method on the network of cifar10-cpu with pre-made batches."""
    task = load_task("cifar10-cpu", ["channels_last=true", *settings])
    data = data_set(noise(count), np.arange(count), (3, 32, 32), PLENTY)
    made = tuple(data.batches(task.batch_size, 0, 0, task.augment, 1))
    trainer = Trainer(
        plan(task, [label], [0], REGISTRY, "")[0].jobs[0], REGISTRY, Premade(**vars(data), made=made), CPU
    )
    return trainer, trainer.start()


def epoch_again(trainer: Trainer, state: State) -> None:
    """Train an epoch from its first step, as often as this is called."""
    state.step = 0
    trainer.train_epoch(state)


def bare_epoch(state: State, batches: tuple[Batch, ...], optimizer: torch.optim.Optimizer) -> None:
    """What one would write by hand."""
    state.method.train()
    for batch in batches:
        loss = cross_entropy(state.method.network(batch.images)[0], batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def trainer_row(rounds: int) -> Row:
    trainer, state = small_trainer(1_280)
    _, other = small_trainer(1_280)
    optimizer = OPTIMIZERS["sgd"](list(other.method.parameters()), trainer.job.task.optimizer)
    made = trainer.data.made
    took = in_turns(rounds, ours=lambda: epoch_again(trainer, state), bare=lambda: bare_epoch(other, made, optimizer))
    ratio = median_ratio(took["ours"], took["bare"])
    return ["SR epoch in the trainer ÷ bare loop", f"{ratio:.3f}", "≤ 1.05", "small CNN, pre-made batches"]


def contrast_alone(runner: Runner) -> Callable[[], object]:
    """The contrastive loss of a batch of features, forward and backward."""
    memory, labels = runner.method.memory, runner.batch.labels
    features = torch.randn(len(labels), memory.positives.features.shape[1], requires_grad=True)
    weight = torch.rand(len(labels))

    def work() -> None:
        keys = memory.positives.keys(), memory.negatives.keys()
        memory.contrast(normalize(features), labels, weight, *keys, memory.config.temperature).mean().backward()

    return work


def forward_alone(runner: Runner) -> Callable[[], object]:
    def work() -> None:
        with torch.no_grad():
            runner.method.network(runner.batch.images)

    return work


def contrast_row(name: str, rounds: int) -> Row:
    """The step of the main method against the parts it is made of."""
    task, owners = load_task(name), label_owners(REGISTRY)
    plain, ours = (make_runner(task, label, owners[label], REGISTRY) for label in ("SR", "CCL-SC"))
    took = in_turns(
        rounds, ours=ours.step, plain=plain.step, forward=forward_alone(plain), contrast=contrast_alone(ours)
    )
    ratio = median_ratio(took["ours"], took["plain"], took["forward"], took["contrast"])
    size = f"K = {ours.method.memory.positives.size}, D = {ours.method.memory.positives.features.shape[1]}"
    remark = f"{size}; {median_ratio(took['ours'], took['plain']):.2f} × SR"
    return [f"CCL-SC step ÷ (SR + forward + CSC), {name}", f"{ratio:.3f}", "≤ 1.05", remark]


def pair_inputs() -> tuple[Tensor, Tensor, Tensor, Keys, Keys]:
    batch, dim, size, classes = PAIRS
    torch.manual_seed(0)
    keys = [
        Keys(normalize(torch.randn(size, dim)), torch.arange(size) % classes, torch.arange(size) % classes)
        for _ in range(2)
    ]
    features = normalize(torch.randn(batch, dim)).requires_grad_()
    return features, torch.arange(batch) % classes, torch.rand(batch), keys[0], keys[1]


def expanded_loss(features: Tensor, labels: Tensor, weight: Tensor, positives: Keys, negatives: Keys) -> Tensor:
    """As the public code goes about it: an anchor's row of negatives is copied for each of its positives."""
    friends = features @ positives.features.T / 0.1
    foes = torch.where(labels[:, None] == negatives.predicted, features @ negatives.features.T / 0.1, -1e9)
    same = labels[:, None] == positives.predicted
    anchor, positive = same.nonzero(as_tuple=True)
    rows = torch.cat([friends[anchor, positive][:, None], foes[anchor]], dim=1)
    exponentials = torch.exp(rows - rows.max(1, keepdim=True).values.detach())
    pairs = -torch.log(exponentials[:, 0] / exponentials.sum(1))
    means = torch.zeros_like(weight).index_add(0, anchor, pairs) / same.sum(1).clamp(min=1)
    return weight * means


def our_loss(*inputs: Any) -> Tensor:
    return csc_loss(*inputs, 0.1)


def loss_rows(rounds: int) -> list[Row]:
    inputs = pair_inputs()
    features, keys = inputs[0], inputs[3:]
    took = in_turns(
        10 * rounds,
        ours=lambda: our_loss(*inputs).mean().backward(),
        products=lambda: sum((features @ each.features.T).sum() for each in keys).backward(),
        expanded=lambda: expanded_loss(*inputs).mean().backward(),
    )
    same = torch.allclose(our_loss(*inputs), expanded_loss(*inputs), atol=1e-4)
    memory = [memory_of(name) for name in ("expanded_loss", "our_loss")]
    shape = "B = {}, D = {}, K = {}, {} classes".format(*PAIRS)
    return [
        ["CSC forward and backward ÷ its similarity products", f"{median_ratio(took['ours'], took['products']):.2f}",
         "≤ 3", shape],
        ["CSC, pair-expanding form ÷ ours: time", f"{median_ratio(took['expanded'], took['ours']):.1f}", "",
         "same values" if same else "VALUES DIFFER"],
        ["CSC, pair-expanding form ÷ ours: peak memory", f"{memory[0] / memory[1]:.1f}", "",
         f"{memory[0]:.0f} MB against {memory[1]:.0f} MB"],
    ]  # fmt: skip


def memory_of(name: str) -> float:
    """MB that a computation takes at its peak, in a fresh process."""
    script = f"from tests.speed import steps; print(steps.taken(steps.{name}))"
    return float(subprocess.check_output([sys.executable, "-c", script], text=True))


def taken(loss: Callable[..., Tensor]) -> float:
    torch.set_num_threads(1)
    inputs = pair_inputs()
    before = anonymous_memory()
    return 1e3 * (peak_memory(lambda: [loss(*inputs).mean().backward() for _ in range(20)]) - before)


def classic_row(rounds: int) -> Row:
    """The loop of the public scripts: PIL images through worker processes, loss and accuracy read back every step."""
    count = 1_280
    trainer, state = small_trainer(count)
    data = data_set(noise(count), np.arange(count), (3, 32, 32), PLENTY)
    ours = Trainer(trainer.job, REGISTRY, data, CPU)
    loader = DataLoader(Pictured(noise(count)), 64, shuffle=True, num_workers=2, persistent_workers=True)
    classic = make_runner(load_task("cifar10-cpu"), "SR", "cross_entropy", REGISTRY)
    network = classic.method.network
    network.memory_format = torch.contiguous_format
    network.to(memory_format=torch.contiguous_format)

    def epoch() -> float:
        total = 0.0
        for images, labels in loader:
            logits = network(images)[0]
            loss = cross_entropy(logits, labels)
            classic.optimizer.zero_grad()
            loss.backward()
            classic.optimizer.step()
            total += loss.item() + (logits.argmax(1) == labels).float().mean().item()
        return total

    took = in_turns(rounds, classic=epoch, ours=lambda: ours.train_epoch(state))
    ratio = median_ratio(took["classic"], took["ours"])
    return ["classic epoch (DataLoader, PIL, values read back) ÷ ours", f"{ratio:.2f}", "", "small CNN, one thread"]
