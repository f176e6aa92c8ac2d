"""What methods with one abstention output share: outputs 1..K are classes, output K+1 abstains."""

import torch
from torch import Tensor

from benchmark.interface import Method, Prediction


class AbstentionMethod(Method):
    extra_outputs = 1
    own_scores = ("abstention", "SR")

    def predict(self, images: Tensor) -> Prediction[Tensor]:
        outputs, features = self.network(images)
        return Prediction(outputs[:, :-1], features, {"abstain": outputs[:, -1]})


def abstention_mass(outputs: Tensor) -> Tensor:
    """Return the mean p_{k+1}: near 1 the network abstains from everything, at 0 the output is unused."""
    return torch.softmax(outputs.detach(), dim=1)[:, -1].mean()
