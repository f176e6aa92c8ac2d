"""MC-dropout: the running statistics against the passes kept in full, and what it takes over."""

import numpy as np
import pytest
import torch
from torch import nn

from benchmark.interface import Task
from benchmark.measure.prediction import Prediction
from methods.mc_dropout import MonteCarloDropout, PassStatistics


def test_statistics_equal_those_of_the_passes_kept() -> None:
    log_p = torch.log_softmax(3 * torch.randn(7, 5, 4, generator=torch.Generator().manual_seed(0)).double(), 2)
    statistics = PassStatistics()
    for one in log_p:
        statistics.add(one)
    p = log_p.exp().numpy()
    mean = p.mean(0)
    top = mean.argmax(1)
    np.testing.assert_allclose(statistics.log_mean().exp().numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(statistics.variance().numpy(), p[:, np.arange(5), top].var(0), rtol=1e-9)
    entropy = -(mean * np.log(mean)).sum(1) + (p * np.log(p)).sum(2).mean(0)
    np.testing.assert_allclose(statistics.mutual_information().numpy(), entropy, rtol=1e-9)


def test_equal_passes_have_neither_variance_nor_information() -> None:
    statistics = PassStatistics()
    for _ in range(3):
        statistics.add(torch.log_softmax(torch.tensor([[50.0, 0.0], [0.3, 0.1]]), 1))
    assert statistics.variance().max() < 1e-6
    assert statistics.mutual_information().max() < 1e-6


class Net(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(16, 3)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(images)
        return self.head(features), features


def make(dropout: float, passes: int = 50) -> MonteCarloDropout:
    torch.manual_seed(0)
    return MonteCarloDropout(Net(dropout), Task(3, 10, 16), MonteCarloDropout.Config(passes=passes)).eval()


def test_dropout_is_on_and_batch_normalisation_is_not() -> None:
    method, images = make(0.5), torch.randn(6, 4)
    before = method.network.body[1].running_mean.clone()
    with torch.no_grad():
        prediction = method.predict(images)
        method.network.body[3].train()
        torch.manual_seed(1)
        passes = torch.stack([torch.softmax(method.network(images)[0], 1) for _ in range(400)])
    assert torch.equal(method.network.body[1].running_mean, before)
    assert prediction.aux["variance"].min() > 0
    torch.testing.assert_close(prediction.logits.exp(), passes.mean(0), atol=0.05, rtol=0)
    assert prediction.features is None
    assert not any(module.training for module in make(0.5).network.modules())


def test_without_dropout_it_is_the_network_itself_and_says_so() -> None:
    method, images = make(0.0, passes=3), torch.randn(6, 4)
    with torch.no_grad():
        torch.testing.assert_close(method.predict(images).logits, torch.log_softmax(method.network(images)[0], 1))
    assert "no dropout" in method.notes()[0]
    assert make(0.5).notes() == []


def test_scores() -> None:
    doubt = np.array([0.3, 0.1, 0.2])
    stored = Prediction(
        np.log([[0.5, 0.5], [0.9, 0.1], [0.8, 0.2]]), None, {"variance": doubt, "mutual information": 2 * doubt}
    )
    scores = MonteCarloDropout.scores(stored)
    assert list(scores) == ["variance", "SR", "mutual information"], "the published one first"
    assert scores["variance"].tolist() == pytest.approx([-0.3, -0.1, -0.2])
    assert scores["mutual information"].tolist() == pytest.approx([-0.6, -0.2, -0.4])


def test_variance_of_nearly_equal_passes_keeps_its_digits_in_float32() -> None:
    noise = 1e-4 * torch.randn(20, 5, 3, generator=torch.Generator().manual_seed(0))
    log_p = torch.log_softmax(torch.tensor([2.0, 0.0, -1.0]) + noise, 2)
    statistics = PassStatistics()
    for one in log_p:
        statistics.add(one)
    exact = log_p.double().exp()[:, :, 0].var(0, unbiased=False)
    torch.testing.assert_close(statistics.variance().double(), exact, rtol=0.02, atol=0)
