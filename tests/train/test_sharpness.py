"""Sharpness-aware steps against a plain two-pass reference, for methods with and without state; resumed to the bit."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmark.check.harness import Candidate, make_batch, small, step_loss
from benchmark.config.load import load_task
from benchmark.config.training import OptimizerConfig
from benchmark.data import streams
from benchmark.interface import Batch, Method, Progress, Step
from benchmark.train.steps.sharpness import Sharpness, ascent, make_sharpness
from benchmark.train.steps.step import take_step
from benchmark.train.trainer import trained_parameters
from methods import Registry
from tests.train.test_speed_settings import assert_resumes, make_job

CPU = torch.device("cpu")
REGISTRY = Registry()
CASES = {"SR": "cross_entropy", "SAT": "self_adaptive", "CCL-SC": "ccl_sc", "SelectiveNet": "selective_net"}
SHARP = [("sam", 0.05), ("f-sam", 0.2), ("asam", 2.0)]


def candidate(label: str) -> Candidate:
    return small(REGISTRY.get(CASES[label]), label)


def warm(label: str) -> Method:
    """A method that has taken some steps, in double precision: its queues are full, its targets have moved."""
    method = candidate(label).make(dropout=0.5).double().train()
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.05)
    for index in range(6):
        step_loss(method, optimizer, doubled(make_batch(method, start=7 * (index % 4))), index)
    return method


def doubled(batch: Batch) -> Batch:
    return Batch(tuple(view.double() for view in batch.views), batch.labels, batch.indices)


def naive_steps(method: Method, kind: str, rho: float, count: int) -> Method:
    """Two passes as one would write them: plain loops, statistics kept by hand, state written from the first."""
    parameters = trained_parameters(method)
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    means: list[Tensor | None] = [None] * len(parameters)
    for index in range(count):
        batch, progress = doubled(make_batch(method, start=index)), Progress(1, 4, index, 4)
        streams.reseed(0, "model noise", 1, index)
        step = method.training_step(batch, progress)
        gradients = torch.autograd.grad(step.loss, parameters)
        buffers = {name: value.clone() for name, value in method.named_buffers()}
        directions = list(gradients)
        if kind == "f-sam":
            for i, (gradient, mean) in enumerate(zip(gradients, means, strict=True)):
                directions[i] = gradient if mean is None else gradient - 1.0 * mean
                means[i] = gradient if mean is None else 0.8 * mean + 0.2 * gradient
        weights = [p.detach().clone() for p in parameters]
        scale = [w.abs() if kind == "asam" else torch.ones_like(w) for w in weights]
        norm = sum(float((s * d).square().sum()) for s, d in zip(scale, directions, strict=True)) ** 0.5
        with torch.no_grad():
            for p, s, d in zip(parameters, scale, directions, strict=True):
                p.add_(rho * s * s * d / norm)
        streams.reseed(0, "model noise", 1, index)
        sharp = torch.autograd.grad(method.training_step(batch, progress).loss, parameters)
        with torch.no_grad():
            for p, w, g in zip(parameters, weights, sharp, strict=True):
                p.copy_(w)
                p.grad = g
            for name, value in method.named_buffers():
                value.copy_(buffers[name])
        optimizer.step()
        streams.reseed(0, "method noise", 1, index)
        with torch.no_grad():
            method.after_step(batch, step.carry, progress)
    return method


@pytest.mark.parametrize(("kind", "rho"), SHARP)
@pytest.mark.parametrize("label", CASES)
def test_steps_equal_a_naive_reference(label: str, kind: str, rho: float) -> None:
    ours, theirs = warm(label), naive_steps(warm(label), kind, rho, 4)
    optimizer = torch.optim.SGD(trained_parameters(ours), lr=0.05, momentum=0.9)
    sharpness = make_sharpness(OptimizerConfig("sgd", 0.05, sharpness=kind), ours)  # type: ignore[arg-type]
    plain = copy.deepcopy(ours)
    for index in range(4):
        batch = doubled(make_batch(ours, start=index))
        take_step(ours, optimizer, batch, 0, Progress(1, 4, index, 4), sharpness=sharpness)
    found, expected = ours.state_dict(), theirs.state_dict()
    for name, value in expected.items():
        if value.is_floating_point():
            assert torch.allclose(found[name], value, rtol=1e-9, atol=1e-12), name
        else:
            assert torch.equal(found[name], value) or name.endswith("num_batches_tracked"), name
    moved = [n for n, v in plain.state_dict().items() if v.is_floating_point() and not torch.equal(v, found[n])]
    assert moved, "the steps went somewhere"


def test_the_climb_is_as_long_as_rho() -> None:
    random = torch.Generator().manual_seed(0)
    gradients = [torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((3, 4), (5,))]
    weights = [torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((3, 4), (5,))]
    climb = ascent(gradients, weights, 0.05, adaptive=False)
    assert torch.cat([each.flatten() for each in climb]).norm().item() == pytest.approx(0.05, abs=1e-12)
    climb = ascent(gradients, weights, 2.0, adaptive=True)
    scaled = torch.cat([(c / w.abs()).flatten() for c, w in zip(climb, weights, strict=True)])
    assert scaled.norm().item() == pytest.approx(2.0, abs=1e-9)
    flat = [torch.zeros(3)]
    assert ascent(flat, flat, 0.05, adaptive=False)[0].tolist() == [0, 0, 0], "no gradient, nowhere to climb"


@dataclass
class Seen:
    """What a network was given."""

    masks: list[Tensor]


@pytest.mark.parametrize("statistics", ["first", "both"])
def test_both_passes_see_the_same_noise_and_one_moves_the_statistics(statistics: str) -> None:
    method, seen = candidate("SR").make(dropout=0.5), Seen([])
    norm = next(layer for layer in method.modules() if isinstance(layer, nn.BatchNorm2d))
    moved = []
    dropout = method.network.dropout
    dropout.register_forward_hook(lambda module, given, out: seen.masks.append(out.detach() == 0))
    dropout.register_forward_hook(lambda *_: moved.append(norm.running_mean.clone()))
    config = OptimizerConfig("sgd", 0.1, sharpness="sam", statistics=statistics)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.1)
    method.train()
    take_step(method, optimizer, make_batch(method), 0, Progress(0, 1, 0, 1), sharpness=make_sharpness(config, method))
    first, second = moved
    assert len(seen.masks) == 2
    assert (seen.masks[0] == seen.masks[1]).float().mean() > 0.9, "but for what the ReLU before it cuts off"
    assert not torch.equal(first, second), "the second pass normalises with the statistics of its batch"
    assert torch.equal(norm.running_mean, first if statistics == "first" else second)


def test_friendly_means_are_the_state() -> None:
    method = candidate("SR").make()
    sharpness = Sharpness(OptimizerConfig("sgd", 0.1, sharpness="f-sam"), method)
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.1)
    take_step(method, optimizer, make_batch(method), 0, Progress(0, 1, 0, 1), sharpness=sharpness)
    plain = sharpness.to_plain()
    assert list(plain) == [name for name, _ in method.named_parameters()]
    again = Sharpness(sharpness.config, method)
    again.from_plain(plain)
    assert all(torch.equal(again.means[p], mean) for p, mean in sharpness.means.items())


@pytest.mark.parametrize(
    "settings",
    [
        ("optimizer.sharpness=sam",),
        ("optimizer.sharpness=f-sam",),
        ("optimizer.sharpness=f-sam", "optimizer.name=adam", "optimizer.momentum=0", "optimizer.lr=0.01"),
        ("optimizer.sharpness=sam", "amp=fp16"),
        ("optimizer.sharpness=asam", "mixing.name=regmixup", "averaging.name=none"),
    ],
    ids=lambda settings: " ".join(each.partition("=")[2] for each in settings),
)
@pytest.mark.parametrize("label", ["SAT", "CCL-SC"])
def test_a_killed_job_resumes_to_the_bit(tiny: Path, tmp_path: Path, label: str, settings: tuple[str, ...]) -> None:
    assert_resumes(make_job(tiny, label, *settings), tmp_path, CPU)


@dataclass
class Huge:
    """A method whose loss overflows as soon as it is scaled."""

    method: Method

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        return Step(1e10 * self.method.training_step(batch, progress).loss)

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        pass


def test_a_scaled_gradient_that_overflows_spoils_nothing() -> None:
    method = candidate("SR").make().train()
    before = {name: value.clone() for name, value in method.named_parameters()}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    sharpness = make_sharpness(OptimizerConfig("sgd", 0.1, sharpness="f-sam"), method)
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.1, fused=True)
    for _ in range(3):
        take_step(Huge(method), optimizer, make_batch(method), 0, Progress(0, 1, 0, 1), scaler, sharpness)
    assert scaler.get_scale() == 2.0**124
    assert all(torch.equal(value, before[name]) for name, value in method.named_parameters()), "no step was taken"
    assert sharpness is not None
    assert all(torch.isfinite(mean).all() for mean in sharpness.means.values())


@pytest.mark.parametrize(("kind", "rho"), SHARP)
@pytest.mark.parametrize("label", ["SR", "CCL-SC"])
def test_a_gradient_scaler_changes_nothing(label: str, kind: str, rho: float) -> None:
    """Its scale doubles after every step: a climb, or an m, in scaled gradients would go elsewhere."""
    ours, theirs = warm(label), naive_steps(warm(label), kind, rho, 4)
    optimizer = torch.optim.SGD(trained_parameters(ours), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1)
    sharpness = make_sharpness(OptimizerConfig("sgd", 0.05, sharpness=kind), ours)  # type: ignore[arg-type]
    for index in range(4):
        batch = doubled(make_batch(ours, start=index))
        take_step(ours, optimizer, batch, 0, Progress(1, 4, index, 4), scaler, sharpness)
    assert scaler.get_scale() == 2.0**14
    expected = dict(theirs.named_parameters())
    for name, value in ours.named_parameters():
        assert torch.allclose(value, expected[name], rtol=1e-9, atol=1e-12), name


def test_labels_and_ids_say_what_is_used(tiny: Path) -> None:
    ids: dict[str, Any] = {
        make_job(tiny, "SR", *settings).id: settings
        for settings in [
            (),
            ("optimizer.sharpness=sam",),
            ("optimizer.sharpness=sam", "optimizer.rho=0.1"),
            ("optimizer.sharpness=asam",),
            ("optimizer.sharpness=f-sam",),
            ("optimizer.sharpness=f-sam", "optimizer.sigma=0.5"),
            ("optimizer.sharpness=sam", "optimizer.statistics=both"),
        ]
    }
    assert len(ids) == 7
    assert load_task(str(tiny), ["optimizer.sharpness=f-sam"]).suffix == "+F-SAM"
