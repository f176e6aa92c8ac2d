"""What the losses on a batch's probabilities share, written so that nothing breaks where the softmax saturates."""

import math

import torch
from torch import Tensor
from torch.nn.functional import nll_loss


def at_label(values: Tensor, labels: Tensor) -> Tensor:
    """Return the entry of each row (B, K) at its label."""
    # The gradient of `gather` would be a scatter, for which the host waits on some GPUs in deterministic mode.
    return -nll_loss(values, labels, reduction="none")


def label_log_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """Return ln p_y."""
    return at_label(torch.log_softmax(logits, 1), labels)


def other_log_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """Return ln(1 − p_y) = logsumexp_{j≠y} ln p_j, with a finite value and gradient also where p_y rounds to 1."""
    return torch.log_softmax(logits, 1).scatter(1, labels[:, None], -math.inf).logsumexp(1)


def confidence(logits: Tensor) -> Tensor:
    """Return r = max_j p_j; the gradient flows to the predicted class only, also on a tie."""
    return torch.softmax(logits, 1).max(1).values


def correctness(logits: Tensor, labels: Tensor) -> Tensor:
    """Return c = 1 where the arg-max is the label, else 0: a constant of the loss."""
    return (logits.argmax(1) == labels).to(logits.dtype)
