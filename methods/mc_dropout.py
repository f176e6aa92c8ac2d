"""MC-dropout: the mean of many passes with dropout left on, through the final network of plain cross-entropy."""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from benchmark.interface import Method, Prediction, Within


class PassStatistics:
    """Mean probability, its variance and the mean entropy over passes, without keeping the passes."""

    def __init__(self) -> None:
        self.count = 0
        self.log_sum = self.first = self.sum = self.square_sum = self.entropy_sum = torch.zeros(())

    def add(self, log_p: Tensor) -> None:
        p = log_p.exp()
        if self.count == 0:
            self.first, self.log_sum = p, log_p
        else:
            self.log_sum = torch.logaddexp(self.log_sum, log_p)
        shifted = p - self.first  # passes lie close together: squares of the plain values would cancel
        self.sum, self.square_sum = self.sum + shifted, self.square_sum + shifted.square()
        self.entropy_sum = self.entropy_sum - (p * log_p).sum(1)
        self.count += 1

    def log_mean(self) -> Tensor:
        """Return log p̄."""
        return self.log_sum - math.log(self.count)

    def variance(self) -> Tensor:
        """Return Var_t p_ŷ of the class that the mean predicts."""
        predicted = self.log_mean().argmax(1, keepdim=True)
        mean, square = (total.gather(1, predicted)[:, 0] / self.count for total in (self.sum, self.square_sum))
        return (square - mean.square()).clamp(min=0)

    def mutual_information(self) -> Tensor:
        """Return H(p̄) − mean_t H(p_t)."""
        log_mean = self.log_mean()
        return (-(log_mean.exp() * log_mean).sum(1) - self.entropy_sum / self.count).clamp(min=0)


class MonteCarloDropout(Method):
    title = "MC-dropout: mean of passes with dropout on, through SR's network; trains nothing"
    reference = "Gal & Ghahramani, ICML 2016"
    labels = {"MC-dropout": {}}
    own_scores = ("variance", "SR", "mutual information")
    """The variance first, as published for rejection (Geifman & El-Yaniv, NeurIPS 2017)."""
    starts_from = "cross_entropy"
    stochastic = True

    @dataclass(frozen=True)
    class Config:
        passes: Annotated[int, Within(1, 10_000, "each pass reads all test images")] = 100

    def predict(self, images: Tensor) -> Prediction[Tensor]:
        """Return the mean of the passes. BatchNorm stays in evaluation mode; only dropout is random."""
        for layer in self.dropout_layers():
            layer.train()
        statistics = PassStatistics()
        for _ in range(self.config.passes):
            statistics.add(torch.log_softmax(self.network(images)[0].float(), 1))
        self.network.eval()
        aux = {"variance": statistics.variance(), "mutual information": statistics.mutual_information()}
        return Prediction(statistics.log_mean(), None, aux)

    def dropout_layers(self) -> list[nn.Module]:
        kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
        return [layer for layer in self.network.modules() if isinstance(layer, kinds) and layer.p > 0]

    def notes(self) -> list[str]:
        return [] if self.dropout_layers() else ["the network has no dropout, so all passes agree and this is SR"]


METHOD = MonteCarloDropout
