"""Check that the ingredients of trainings go with a method."""

from dataclasses import replace

import torch

from benchmark.check.findings import require
from benchmark.check.harness import EPOCH, Candidate, differing, loss_of, make_batch, train
from benchmark.config.training import OptimizerConfig
from benchmark.train.steps.sharpness import make_sharpness
from benchmark.train.steps.step import take_step
from benchmark.train.trainer import trained_parameters


def second_pass(candidate: Candidate) -> None:
    """Require that a sharpness-aware step without a learning rate leaves the state that a plain one leaves."""
    states = []
    for kind in ("none", "sam"):
        method = train(candidate.make(dropout=0.5))
        optimizer = torch.optim.SGD(trained_parameters(method), lr=0.0)
        sharpness = make_sharpness(OptimizerConfig("sgd", 1.0, sharpness=kind), method)
        take_step(method, optimizer, make_batch(method), 0, EPOCH, sharpness=sharpness)
        states.append(method.state_dict())
    changed = differing(*states)
    require(not changed, f"a second pass leaves a trace in {', '.join(changed[:3])}; write state in after_step only")


def mixed_labels(candidate: Candidate) -> None:
    """Require that the loss of mixed images is λ·L(y) + (1−λ)·L(y′)."""
    method = train(candidate.make())
    batch = make_batch(method)
    other = replace(batch, labels=batch.labels.flip(0))
    mixed = loss_of(method, replace(batch, partners=other.labels, share=0.7))
    expected = 0.7 * loss_of(method, batch) + 0.3 * loss_of(method, other)
    require(torch.allclose(mixed, expected, atol=1e-5), f"the loss of a mixed batch is {mixed:.6g}, not {expected:.6g}")
