"""SAT against the K-vector form of its reference, and both entropy forms."""

import pytest
import torch

from benchmark.interface import Batch, Progress, Task
from methods.self_adaptive import SelfAdaptive, entropy, released_entropy, sat_loss, updated_target

K = 4
GENERATOR = torch.Generator().manual_seed(0)
OUTPUTS = torch.randn(8, K + 1, generator=GENERATOR, dtype=torch.float64) * 3
LABELS = torch.arange(8) % K


def test_one_scalar_per_sample_equals_the_full_soft_target() -> None:
    """Twenty random updates of t ∈ R^K with the loss read from it, as the reference writes it."""
    full = torch.nn.functional.one_hot(LABELS, K).double()
    scalar = torch.ones(8, dtype=torch.float64)
    for _ in range(20):
        outputs = torch.randn(8, K + 1, generator=GENERATOR, dtype=torch.float64) * 3
        full = 0.9 * full + 0.1 * torch.softmax(outputs[:, :K], 1)
        scalar = updated_target(scalar, outputs[:, :K], LABELS, 0.9)
        label_part = full[torch.arange(8), LABELS]
        soft = torch.zeros(8, K + 1, dtype=torch.float64)
        soft[torch.arange(8), LABELS] = label_part
        soft[:, -1] = 1 - label_part
        reference = -(soft * torch.log_softmax(outputs, 1)).sum(1)
        torch.testing.assert_close(sat_loss(outputs, LABELS, scalar), reference, rtol=0, atol=1e-12)


def test_gradients_by_finite_differences() -> None:
    target = torch.rand(8, generator=GENERATOR, dtype=torch.float64)
    outputs = OUTPUTS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda u: sat_loss(u, LABELS, target), outputs)
    assert torch.autograd.gradcheck(entropy, outputs)
    assert torch.autograd.gradcheck(released_entropy, outputs)


def test_target_has_no_gradient() -> None:
    outputs = OUTPUTS.clone().requires_grad_()
    assert not updated_target(torch.ones(8, dtype=torch.float64), outputs[:, :K], LABELS, 0.9).requires_grad


def test_released_entropy_is_the_entropy_less_the_log_sum() -> None:
    torch.testing.assert_close(released_entropy(OUTPUTS), entropy(OUTPUTS) - torch.logsumexp(OUTPUTS, 1))
    p = torch.softmax(OUTPUTS, 1)
    torch.testing.assert_close(entropy(OUTPUTS), torch.distributions.Categorical(p).entropy())


def test_entropy_of_f6() -> None:
    from tests.fixtures import F6_LOGITS

    expected = [0.62158460, 1.09528727, 0.57717555, 0.83239558, 0.43713601, 0.95280756]
    assert entropy(torch.tensor(F6_LOGITS)).tolist() == pytest.approx(expected, abs=1e-8)


def test_entropy_of_saturated_logits_is_zero_with_zero_gradient() -> None:
    logits = torch.tensor([[300.0, 0.0, 0.0]], requires_grad=True)
    value = entropy(logits).sum()
    value.backward()
    assert value == 0
    assert (logits.grad == 0).all()


class Fixed(torch.nn.Module):
    """A network that always says the same."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = torch.nn.Parameter(OUTPUTS.float())

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.outputs, self.outputs


def test_the_target_is_updated_by_index_and_only_after_the_step() -> None:
    method = SelfAdaptive(Fixed(), Task(K, 20, 5), SelfAdaptive.Config(target_momentum=0.5))
    indices = torch.tensor([3, 1, 4, 15, 9, 2, 6, 5])
    batch, progress = Batch((torch.zeros(8, 1, 2, 2),), LABELS, indices), Progress(0, 1, 0, 1)
    step = method.training_step(batch, progress)
    assert (method.target == 1).all()
    method.after_step(batch, step.carry, progress)
    p_label = torch.softmax(OUTPUTS[:, :K], 1)[torch.arange(8), LABELS].float()
    torch.testing.assert_close(method.target[indices], 0.5 + 0.5 * p_label)
    untouched = [i for i in range(20) if i not in indices]
    assert (method.target[untouched] == 1).all()
