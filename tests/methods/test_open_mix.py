"""OpenMix's loss against soft targets over K+1 classes; what is drawn; what is predicted."""

from dataclasses import replace

import pytest
import torch
from scipy import stats
from torch.nn.functional import cross_entropy, one_hot

from benchmark.check.harness import NUM_CLASSES, images, make_batch, small
from benchmark.interface import Batch, Progress
from methods import Registry
from methods.open_mix import OpenMix, mixed_cross_entropy

PROGRESS = Progress(0, 1, 0, 1)
OUTPUTS = torch.randn(16, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
LABELS = torch.arange(16) % 4


def make(**settings: float) -> OpenMix:
    method = replace(small(Registry().get("open_mix"), "OpenMix"), settings=settings).make(dropout=0.0)
    assert isinstance(method, OpenMix)
    return method.double()


def batch_for(method: OpenMix, start: int = 0) -> Batch:
    batch = make_batch(method, start=start)
    assert batch.outliers is not None
    return replace(batch, views=(batch.images.double(),), outliers=batch.outliers.double())


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_loss_of_mixtures_is_that_of_soft_targets(share: float) -> None:
    targets = share * one_hot(LABELS, 5) + (1 - share) * one_hot(torch.full_like(LABELS, 4), 5)
    expected = cross_entropy(OUTPUTS, targets.double(), reduction="none")
    torch.testing.assert_close(mixed_cross_entropy(OUTPUTS, LABELS, share), expected)


def test_by_hand() -> None:
    """p = (1/2, 1/4, 1/4): λ·ln 2 + (1−λ)·ln 4."""
    outputs = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64).log()
    assert mixed_cross_entropy(outputs, torch.tensor([0]), 0.25).item() == pytest.approx(1.75 * 0.69314718056)


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_a_step_adds_both_cross_entropies(weight: float) -> None:
    """In evaluation mode, where the halves of the batch do not meet in BatchNorm."""
    method = make(weight=weight).eval()
    batch = batch_for(method)
    assert batch.outliers is not None
    share = batch.draw_beta(10.0)
    mixed = share * batch.images + (1 - share) * batch.outliers
    outlier = torch.full_like(batch.labels, NUM_CLASSES)
    in_distribution, outputs = (method.network(each)[0] for each in (batch.images, mixed))
    expected = share * cross_entropy(outputs, batch.labels) + (1 - share) * cross_entropy(outputs, outlier)
    expected = cross_entropy(in_distribution, batch.labels) + weight * expected
    torch.testing.assert_close(method.training_step(batch, PROGRESS).loss, expected)


def test_shares_are_beta_distributed_and_belong_to_the_batch() -> None:
    batch = batch_for(make())
    drawn = [replace(batch, stream=stream).draw_beta(10.0) for stream in range(2000)]
    assert stats.kstest(drawn, stats.beta(10, 10).cdf).pvalue > 1e-3
    before = torch.get_rng_state()
    assert replace(batch, stream=7).draw_beta(10.0) == drawn[7]
    assert torch.equal(before, torch.get_rng_state()), "dropout draws what it draws without it"


def test_softmax_response_is_of_the_first_outputs_alone() -> None:
    method = make().eval()
    outputs, _ = method.network(images().double())
    prediction = method.predict(images().double())
    assert torch.equal(prediction.logits, outputs[:, :-1])
    assert not prediction.aux


def test_without_outliers_it_says_so() -> None:
    method = make()
    with pytest.raises(TypeError, match="no outliers"):
        method.training_step(replace(batch_for(method), outliers=None), PROGRESS)
