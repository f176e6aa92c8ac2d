"""The gambler's loss against its plain form, finite differences, and where the plain form breaks."""

import pytest
import torch

from methods.deep_gamblers import gambler_loss

OUTPUTS = torch.randn(16, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
LABELS = torch.arange(16) % 4


@pytest.mark.parametrize("reward", [1.5, 2.2, 4.0])
def test_equals_the_probability_form(reward: float) -> None:
    p = torch.softmax(OUTPUTS, 1)
    plain = -torch.log(p[torch.arange(16), LABELS] + p[:, -1] / reward)
    torch.testing.assert_close(gambler_loss(OUTPUTS, LABELS, reward), plain)


def test_by_hand() -> None:
    """Uniform over two classes and abstention: p = 1/3 each, so −log(1/3 + 1/6) = log 2 at reward 2."""
    loss = gambler_loss(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([0]), 2.0)
    assert loss.item() == pytest.approx(0.69314718056)


def test_gradient_by_finite_differences() -> None:
    outputs = OUTPUTS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda u: gambler_loss(u, LABELS, 2.2), outputs)


def test_finite_where_both_probabilities_underflow() -> None:
    outputs = torch.tensor([[0.0, 500.0, 0.0]], requires_grad=True)
    loss = gambler_loss(outputs, torch.tensor([0]), 2.2).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()
