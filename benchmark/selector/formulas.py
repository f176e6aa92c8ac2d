"""The confidence scores of `benchmark/measure` on tensors: the same formulas, in float64, larger = more confident.

They use operations that every runtime of ONNX computes alike: sums of exponentials are made by hand, as some exporters
write a log-sum-exp or a logarithm of 1 + x in a way that overflows or cancels. Fractions are tensors, as exporters
write plain numbers in single precision.
"""

import torch
from torch import Tensor

from benchmark.measure.scores import TIE_BREAK


def fraction(value: float, like: Tensor) -> Tensor:
    """Return a number that has no end in binary digits, in double precision."""
    return torch.tensor(value, dtype=torch.float64, device=like.device)


def log_sum_exp(values: Tensor) -> Tensor:
    """Return log Σ_j exp(v_j) of each row."""
    top = values.amax(1, keepdim=True)
    return torch.log((values - top).exp().sum(1)) + top[:, 0]


def log_one_plus(x: Tensor) -> Tensor:
    """Return log(1 + x) for x > −1, as exact for small x: what 1 + x has rounded away divides out."""
    whole = 1.0 + x
    gained = whole - 1.0
    is_tiny = gained == 0
    return torch.where(is_tiny, x, torch.log(whole) * x / torch.where(is_tiny, 1.0, gained))


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + eˣ)."""
    return torch.relu(x) + log_one_plus(torch.exp(-x.abs()))


def log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    """Return log(eᵃ + eᵇ)."""
    return torch.maximum(a, b) + log_one_plus(torch.exp(-(a - b).abs()))


def log_softmax(u: Tensor) -> Tensor:
    return u - log_sum_exp(u)[:, None]


def ascending(values: Tensor) -> Tensor:
    """Return each row in ascending order."""
    return torch.topk(values, values.shape[1], dim=1).values.flip(1)


def without_top(values: Tensor, top: Tensor) -> Tensor:
    """Return the values with −∞ in the place of the `top` one of each row."""
    columns = torch.arange(values.shape[1], device=values.device)
    return torch.where(columns[None, :] == top[:, None], -torch.inf, values)


def softmax_response(u: Tensor) -> Tensor:
    top = u.argmax(1)
    return u.amax(1) - log_sum_exp(without_top(u, top))


def abstention(u: Tensor, abstain: Tensor) -> Tensor:
    return softplus(log_sum_exp(u) - abstain)


def margin(u: Tensor) -> Tensor:
    log_p = ascending(log_softmax(u))
    return -log_add_exp(log_sum_exp(log_p[:, :-1]), log_p[:, -2])


def logit_margin(u: Tensor) -> Tensor:
    largest = torch.topk(u, 2, dim=1).values
    return largest[:, 0] - largest[:, 1]


def normalised_margin(u: Tensor, lengths: Tensor) -> Tensor:
    top = u.argmax(1)
    distances = u / lengths
    return distances.gather(1, top[:, None])[:, 0] - without_top(distances, top).amax(1)


def generalised_entropy(u: Tensor, gamma: float = 0.1, most: int = 100) -> Tensor:
    log_p = ascending(log_softmax(u))
    rest = log_sum_exp(log_p[:, :-1])[:, None]
    largest = log_p[:, -most:]
    log_rest = torch.cat([log_one_plus(-torch.exp(largest[:, :-1])), rest], 1)
    return -torch.exp(fraction(gamma, u) * (largest + log_rest)).sum(1)


def negative_entropy(u: Tensor) -> Tensor:
    log_p = log_softmax(u)
    return (log_p.exp() * log_p).sum(1)


def max_logit(u: Tensor) -> Tensor:
    return u.amax(1)


def cosine_logit(u: Tensor) -> Tensor:
    norm = (u * u).sum(1).sqrt()
    return torch.where(norm > 0, u.amax(1) / torch.where(norm > 0, norm, 1.0), 0.0)


def disagreement(u: Tensor, doubt: Tensor) -> Tensor:
    return -(doubt + fraction(TIE_BREAK, u) * torch.sigmoid(-softmax_response(u)))


def doctor(u: Tensor) -> Tensor:
    p = ascending(log_softmax(u).exp())
    rest = torch.cat([1 - p[:, :-1], p[:, :-1].sum(1, keepdim=True)], 1)
    return -(p * rest).sum(1) / (p * p).sum(1)


def max_logit_pnorm(u: Tensor, p: int) -> Tensor:
    centred = u - u.mean(1, keepdim=True)
    top = centred.amax(1)
    if p == 0:
        return top
    norm = (centred.abs() ** p).sum(1) ** fraction(1 / p, u)
    return torch.where(norm > 0, top / torch.where(norm > 0, norm, 1.0), 0.0)


def centre_closeness(features: Tensor, means: Tensor, precision: Tensor) -> Tensor:
    gaps = features[:, None, :] - means[None, :, :]
    return -((gaps @ precision) * gaps).sum(2).amin(1)


def cost_of_classes(u: Tensor, costs: Tensor) -> Tensor:
    p = log_softmax(u).exp()
    return -((p @ costs) * p).sum(1)


def nearest_white(features: Tensor, centre: Tensor, whitening: Tensor, white_means: Tensor) -> Tensor:
    white = (features - centre) @ whitening
    squares = (white * white).sum(1, keepdim=True) + (white_means * white_means).sum(1)
    return (squares - 2 * white @ white_means.T).clamp(min=0).amin(1)


def discounted_response(u: Tensor, features: Tensor, start: Tensor, slope: Tensor) -> Tensor:
    second = features.abs().sum(1)
    return softplus(softmax_response(u)) - softplus(-slope * (second - start))


def level_less_residual(u: Tensor, features: Tensor, origin: Tensor, others: Tensor, scale: Tensor) -> Tensor:
    rest = (features - origin) @ others
    return log_sum_exp(u) - scale * (rest * rest).sum(1).sqrt()


def log_mean_probability(members: Tensor) -> Tensor:
    """Return log (1/M) Σ_m softmax(u_m) of logits (M, N, K)."""
    log_p = torch.stack([log_softmax(u) for u in members.unbind(0)])
    top = log_p.amax(0)
    return torch.log((log_p - top).exp().mean(0)) + top
