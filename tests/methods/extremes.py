"""Batches on which losses tend to break: saturated, uniform, all right, all wrong, a single image."""

from collections.abc import Callable

import torch
from torch import Tensor

from tests.fixtures import F6_LABELS, F6_LOGITS

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
GAP = 200 * torch.eye(3)[:1].repeat(6, 1)

EXTREMES = {
    "right and wrong by 200": (GAP, Y),
    "all right by 200": (GAP, torch.zeros_like(Y)),
    "all wrong by 200": (GAP, torch.ones_like(Y)),
    "all right": (Z.float(), Z.argmax(1)),
    "all wrong": (Z.float(), (Z.argmax(1) + 1) % 3),
    "uniform": (torch.zeros(6, 3), Y),
    "one image": (Z[:1].float(), Y[:1]),
    "one image, right by 200": (GAP[:1], Y[:1]),
}


def assert_finite(loss_of: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> None:
    """Value and gradient."""
    logits = logits.clone().requires_grad_()
    loss = loss_of(logits, labels)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
