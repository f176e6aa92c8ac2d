"""What methods share that learn, beside a frozen network, how far to trust it."""

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from benchmark.interface import Doubt, Method, Task


def perceptron(inputs: int, hidden: int, layers: int) -> nn.Sequential:
    """Return `layers` hidden layers of one width, with ReLU, and one output."""
    widths = [inputs, *[hidden] * layers]
    parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*parts, nn.Linear(widths[-1], 1))


class SecondStage(Method):
    starts_from = "cross_entropy"
    second_stage = True
    doubts = {"uncertainty": Doubt("head")}
    own_scores = ("learnt uncertainty", "SR")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.head = perceptron(task.feature_dim, config.hidden, config.layers)
        """From features to one number, larger where there is more doubt."""

    def doubt(self, features: Tensor) -> Tensor:
        doubt: Tensor = self.head(features)[:, 0]
        return doubt

    def notes(self) -> list[str]:
        if self.config.images == "train":
            return []
        return ["validation images trained its second stage, so scores fitted on them see more than they should"]
