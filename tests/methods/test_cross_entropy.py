"""SR's training: the mean negative log-likelihood and its textbook gradient."""

import pytest
import torch

from benchmark.interface import Batch, Progress, Task
from methods.cross_entropy import CrossEntropy
from tests.methods.extremes import Y, Z


def test_value_and_gradient_of_f6() -> None:
    logits = Z.clone().requires_grad_()
    method = CrossEntropy(lambda images: (images, None), Task(3, 6, 3), CrossEntropy.Config())
    step = method.training_step(Batch((logits,), Y, Y), Progress(0, 1, 0, 1))
    assert step.loss.item() == pytest.approx(0.70077762, abs=1e-8)
    step.loss.backward()
    expected = (torch.softmax(Z, 1) - torch.nn.functional.one_hot(Y, 3)) / 6
    torch.testing.assert_close(logits.grad, expected)
    assert step.logs["accuracy"].item() == 0.5
