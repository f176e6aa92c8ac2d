"""AUCOC: cross-entropy plus −ln of the area under the curve of accuracy over the share of deferred samples."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from benchmark.interface import Batch, Method, Progress, Step, Weight, accuracy
from methods._probabilities import confidence, label_log_probability

SMALLEST_BANDWIDTH = 1e-4
SMALLEST_AREA = 1e-12


def precise(values: Tensor) -> Tensor:
    """Return float64, or float32 on the one device without: differences of nearly equal integrals need the digits."""
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)


def normal_cdf(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def bandwidth(r: Tensor) -> Tensor:
    """Return h of Scott's rule h² = N^{−2/5}·var(r), floored: a saturated batch has no variance."""
    variance = (r - r.mean()).square().sum() / max(len(r) - 1, 1)
    return (variance / math.pow(len(r), 0.4)).sqrt().clamp(min=SMALLEST_BANDWIDTH)


def curve(r: Tensor, q: Tensor, rho: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the share deferred τ_k, the accuracy on the rest a_k and ∂a_k/∂q_n at each ρ_k, by kernel density.

    τ = (1/N) Σ_n [Φ((ρ−r_n)/h) − Φ(−r_n/h)],  a = (1/N) Σ_n q_n [Φ((1−r_n)/h) − Φ((ρ−r_n)/h)] / (1−τ)
    """
    below = normal_cdf((rho[:, None] - r) / h)
    tau = (below - normal_cdf(-r / h)).mean(1)
    a_by_q = (normal_cdf((1 - r) / h) - below) / (len(r) * (1 - tau[:, None]))
    return tau, a_by_q @ q, a_by_q


def accuracy_slope(r: Tensor, q: Tensor, rho: Tensor, h: Tensor, tau: Tensor) -> Tensor:
    """Return ∂a_k/∂r_n where ρ_k moves so that τ_k stays: the w_k term, which plain autograd lacks.

    −{q_n[φ̂(1−r_n) − φ̂(ρ_k−r_n)] + w_k[φ̂(ρ_k−r_n) − φ̂(r_n)]} / (√(2π)·h·N·(1−τ_k)),  φ̂(x) = e^{−x²/2h²}
    """
    at_rho, at_one, at_zero = (torch.exp(-0.5 * (x / h).square()) for x in (rho[:, None] - r, 1 - r, r))
    w = (at_rho @ q / at_rho.sum(1))[:, None]
    scale = math.sqrt(2 * math.pi) * h * len(r) * (1 - tau[:, None])
    return -(q * (at_one - at_rho) + w * (at_rho - at_zero)) / scale


def loss_and_gradients(r: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return L = −ln A, ∂L/∂r and ∂L/∂q, with A = ½ Σ_k (a_k + a_{k−1})(τ_k − τ_{k−1}) from a_0 = τ_0 = 0.

    The bandwidth and the widths of the trapezoids are constants of the gradient.
    """
    rho, h = r.sort().values, bandwidth(r)
    tau, a, a_by_q = curve(r, q, rho, h)
    widths = pad(tau, (1, 0)).diff()
    shares = (widths + pad(widths[1:], (0, 1))) / 2
    area = (shares @ a).clamp(min=SMALLEST_AREA)
    a_by_r = accuracy_slope(r, q, rho, h, tau)
    return -area.log(), -(shares @ a_by_r) / area, -(shares @ a_by_q) / area


class NegativeLogArea(torch.autograd.Function):
    """L(r, q) with its published gradient, which is not the derivative of its value."""

    @staticmethod
    def forward(ctx: Any, r: Tensor, q: Tensor) -> Tensor:
        loss, by_r, by_q = loss_and_gradients(precise(r), precise(q))
        ctx.save_for_backward(by_r.to(r.dtype), by_q.to(q.dtype))
        return loss.to(r.dtype)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor]:
        by_r, by_q = ctx.saved_tensors
        return upstream[0] * by_r, upstream[0] * by_q


class AUCOC(Method):
    """mean CE + (λ/N)·L, N the batch size: what the released code descends. It reports Σ CE + N·λ·L, but its backward
    pass drops the N. A plain "mean CE + λ·L" is N times as strong."""

    title = "cross-entropy plus the area under the accuracy-over-deferral curve"
    reference = "Sangalli et al., NeurIPS 2023"
    labels = {"AUCOC": {}}
    couples_samples = True

    @dataclass(frozen=True)
    class Config:
        weight: Weight = 1.0
        """lambda; divided by the batch size."""

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        q = label_log_probability(logits, batch.labels).exp()
        area_loss: Tensor = NegativeLogArea.apply(confidence(logits), q)
        loss = cross_entropy(logits, batch.labels) + self.config.weight / len(q) * area_loss
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), "area": (-area_loss.detach()).exp()})


METHOD = AUCOC
