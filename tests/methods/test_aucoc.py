"""AUCOC: value against printed numbers and a plain loop, and its gradient against thresholds that really move."""

from statistics import NormalDist, stdev

import pytest
import torch
from scipy.optimize import brentq
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Task
from methods._probabilities import confidence, label_log_probability
from methods.aucoc import AUCOC, NegativeLogArea, bandwidth, curve, loss_and_gradients
from tests.fixtures import F6_LABELS, F6_LOGITS
from tests.methods.extremes import EXTREMES, assert_finite

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
R, Q = confidence(Z), label_log_probability(Z, Y).exp()
BY_R = [0.25282549, -0.01255759, 0.31586885, 0.39717753, 0.94814505, 0.11667944]
BY_Q = [-0.34674878, -0.03731768, -0.35563093, -0.22963425, -0.37766448, -0.12544931]
CDF = NormalDist().cdf


def step_loss(logits: Tensor, labels: Tensor, **settings: object) -> Tensor:
    method = AUCOC(lambda images: (images, None), Task(3, 6, 3), AUCOC.Config(**settings))
    return method.training_step(Batch((logits,), labels, labels), Progress(0, 1, 0, 1)).loss


def random_batch(size: int) -> tuple[list[float], list[float]]:
    logits = torch.randn(size, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 1.5
    return confidence(logits).tolist(), label_log_probability(logits, torch.arange(size) % 4).exp().tolist()


def deferred(rho: float, r: list[float], h: float) -> float:
    return sum(CDF((rho - x) / h) - CDF(-x / h) for x in r) / len(r)


def accuracy_on_the_rest(rho: float, r: list[float], q: list[float], h: float) -> float:
    kept = sum(y * (CDF((1 - x) / h) - CDF((rho - x) / h)) for x, y in zip(r, q, strict=True)) / len(r)
    return kept / (1 - deferred(rho, r, h))


def area(a: list[float], tau: list[float]) -> float:
    """Trapezoids from (0, 0)."""
    a, tau = [0.0, *a], [0.0, *tau]
    return sum((a[k] + a[k - 1]) * (tau[k] - tau[k - 1]) / 2 for k in range(1, len(a)))


def test_f6() -> None:
    h = bandwidth(R)
    assert h.item() == pytest.approx(0.13338387, abs=1e-8)
    tau, a, _ = curve(R, Q, R.sort().values, h)
    expected_tau = [0.10010055, 0.27775811, 0.44864719, 0.66183288, 0.68396149, 0.82472327]
    assert tau.tolist() == pytest.approx(expected_tau, abs=1e-8)
    expected_a = [0.53907994, 0.58595200, 0.62696192, 0.63706252, 0.63329038, 0.55261285]
    assert a.tolist() == pytest.approx(expected_a, abs=1e-8)
    loss, by_r, by_q = loss_and_gradients(R, Q)
    assert loss.item() == pytest.approx(0.77043945, abs=1e-8)
    assert (-loss).exp().item() == pytest.approx(0.46280964, abs=1e-8)
    assert by_r.tolist() == pytest.approx(BY_R, abs=1e-8)
    assert by_q.tolist() == pytest.approx(BY_Q, abs=1e-8)


def test_equals_a_plain_loop() -> None:
    r, q = random_batch(9)
    h = stdev(r) * 9**-0.2
    tau = [deferred(rho, r, h) for rho in sorted(r)]
    a = [accuracy_on_the_rest(rho, r, q, h) for rho in sorted(r)]
    loss, _, _ = loss_and_gradients(torch.tensor(r, dtype=torch.float64), torch.tensor(q, dtype=torch.float64))
    assert (-loss).exp().item() == pytest.approx(area(a, tau), rel=1e-10)


def test_gradient_by_thresholds_that_keep_the_deferred_share() -> None:
    """Finite differences in which each ρ_k is solved for anew; h and the trapezoids' widths stay."""
    r, q = random_batch(7)
    h = bandwidth(torch.tensor(r, dtype=torch.float64)).item()
    tau = [deferred(rho, r, h) for rho in sorted(r)]

    def moved_area(r: list[float], q: list[float]) -> float:
        thresholds = [brentq(lambda rho, share=share: deferred(rho, r, h) - share, -1, 2, xtol=1e-14) for share in tau]
        return area([accuracy_on_the_rest(rho, r, q, h) for rho in thresholds], tau)

    def slope(values: list[float], n: int, area_of: object, width: float = 1e-5) -> float:
        ends = [area_of([v + side * (i == n) for i, v in enumerate(values)]) for side in (-width, width)]  # type: ignore[operator]
        return (ends[1] - ends[0]) / (2 * width)

    _, by_r, by_q = loss_and_gradients(torch.tensor(r, dtype=torch.float64), torch.tensor(q, dtype=torch.float64))
    whole = moved_area(r, q)
    expected_r = [-slope(r, n, lambda moved: moved_area(moved, q)) / whole for n in range(7)]
    expected_q = [-slope(q, n, lambda moved: moved_area(r, moved)) / whole for n in range(7)]
    assert by_r.tolist() == pytest.approx(expected_r, abs=1e-7)
    assert by_q.tolist() == pytest.approx(expected_q, abs=1e-7)


def test_the_incoming_gradient_is_respected() -> None:
    r, q = R.clone().requires_grad_(), Q.clone().requires_grad_()
    (NegativeLogArea.apply(r, q) * -3).backward()
    assert r.grad.tolist() == pytest.approx([-3 * g for g in BY_R], abs=3e-8)
    assert q.grad.tolist() == pytest.approx([-3 * g for g in BY_Q], abs=3e-8)


def test_total_weighs_the_area_by_lambda_over_the_batch_size() -> None:
    logits = Z.clone().requires_grad_()
    loss = step_loss(logits, Y, weight=2.0)
    assert loss.item() == pytest.approx(0.70077762 + 2 / 6 * 0.77043945, abs=1e-8)
    (gradient,) = torch.autograd.grad(loss, logits)
    linear = confidence(logits) @ torch.tensor(BY_R, dtype=torch.float64)
    linear = linear + label_log_probability(logits, Y).exp() @ torch.tensor(BY_Q, dtype=torch.float64)
    (expected,) = torch.autograd.grad(cross_entropy(logits, Y) + 2 / 6 * linear, logits)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-8)


def test_float32_is_computed_in_float64() -> None:
    """Nearly saturated confidences, at which float32 loses most digits of r − ρ over h."""
    r = (1 - torch.linspace(1e-6, 1e-4, 64)).requires_grad_()
    q = torch.linspace(0.5, 1, 64)
    loss = NegativeLogArea.apply(r, q)
    loss.backward()
    exact, by_r, _ = loss_and_gradients(r.detach().double(), q.double())
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-7)
    torch.testing.assert_close(r.grad, by_r.float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str) -> None:
    assert_finite(step_loss, *EXTREMES[case])


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(UserError, match="weight"):
        build(AUCOC.Config, {"weight": -1.0}, "here")
