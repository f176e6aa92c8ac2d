"""What methods with one abstention output share: outputs 1..K are classes, output K+1 abstains."""

import torch
from torch import Tensor

from benchmark.interface import Doubt, Method


class AbstentionMethod(Method):
    extra_outputs = 1
    doubts = {"abstain": Doubt()}
    own_scores = ("abstention", "SR")


def abstention_mass(outputs: Tensor) -> Tensor:
    """Return the mean p_{k+1}: near 1 the network abstains from everything, at 0 the output is unused."""
    return torch.softmax(outputs.detach(), dim=1)[:, -1].mean()
