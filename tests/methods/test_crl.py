"""The correctness ranking loss against printed values and a plain loop, and the counts that it ranks by."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Step, Task
from methods._probabilities import confidence
from methods.crl import CONFIDENCES, CRL, margin, negative_entropy, ranking_loss, share_right
from tests.methods.extremes import EXTREMES, Y, Z, assert_finite

COUNTS = torch.tensor([4.0, 0, 5, 1, 5, 2], dtype=torch.float64)
F6_PAIRS = [0.38156837, 0.56928937, 0.66736493, 0.58174888, 0.26305731, 0.16095235]
every_confidence = pytest.mark.parametrize("kind", CONFIDENCES)


def make(counts: Tensor | None = None, num_train: int = 6, **settings: object) -> CRL:
    method = CRL(lambda images: (images, None), Task(3, num_train, 3), CRL.Config(**settings))
    if counts is not None:
        method.counts = counts.clone()
    return method


def step(method: CRL, logits: Tensor, labels: Tensor, epoch: int = 5) -> Step:
    indices = torch.arange(len(labels))
    return method.training_step(Batch((logits,), labels, indices), Progress(epoch, 10, 0, 1))


def by_loop(r: list[float], counts: list[float], epochs: int) -> list[float]:
    """As the paper says it, pair by pair: nothing where both were right equally often."""
    fewest, losses = min(counts), []
    scale = epochs - fewest
    for i in range(len(r)):
        j = (i + 1) % len(r)
        a, b = ((counts[k] - fewest) / scale if scale > 0 else counts[k] - fewest for k in (i, j))
        sign = (a > b) - (a < b)
        losses.append(max(0.0, -sign * (r[i] - r[j]) + abs(a - b)) if sign else 0.0)
    return losses


def test_f6() -> None:
    kappa = share_right(COUNTS, COUNTS.min(), 5)
    assert ranking_loss(confidence(Z), kappa).tolist() == pytest.approx(F6_PAIRS, abs=1e-8)
    assert ranking_loss(confidence(Z), kappa).mean().item() == pytest.approx(0.43733020, abs=1e-8)


def test_total() -> None:
    found = step(make(COUNTS), Z, Y)
    assert found.loss.item() == pytest.approx(0.70077762 + 0.43733020, abs=1e-8)
    assert found.logs["ranking"].item() == pytest.approx(0.43733020, abs=1e-8)
    assert step(make(COUNTS, weight=0.0), Z, Y).loss.item() == pytest.approx(cross_entropy(Z, Y).item(), abs=1e-12)


@every_confidence
@pytest.mark.parametrize("size", [1, 2, 7])
def test_equals_a_plain_loop(kind: str, size: int) -> None:
    """Also with the count of an epoch that is not over, and with two images, which meet both ways round."""
    g = torch.Generator().manual_seed(size)
    logits = 3 * torch.randn(size, 4, generator=g, dtype=torch.float64)
    counts = torch.randint(0, 7, (size,), generator=g).double()
    r = CONFIDENCES[kind](logits)
    found = ranking_loss(r, share_right(counts, counts.min(), 6)).tolist()
    assert found == pytest.approx(by_loop(r.tolist(), counts.tolist(), 6), abs=1e-12)


def test_the_confidences() -> None:
    entropy = [0.62158460, 1.09528727, 0.57717555, 0.83239558, 0.43713601, 0.95280756]
    assert margin(Z).tolist() == pytest.approx(
        [0.61030664, 0.03494041, 0.61984582, 0.42051248, 0.81097063, 0.21505043], abs=1e-8
    )
    assert negative_entropy(Z).tolist() == pytest.approx([-h / math.log(3) for h in entropy], abs=1e-8)
    uniform = torch.zeros(1, 5, dtype=torch.float64)
    assert negative_entropy(uniform).item() == pytest.approx(-1)


@every_confidence
def test_gradient_by_finite_differences(kind: str) -> None:
    kappa = share_right(COUNTS, COUNTS.min(), 5)
    assert torch.autograd.gradcheck(lambda z: ranking_loss(CONFIDENCES[kind](z), kappa), Z.clone().requires_grad_())


@pytest.mark.parametrize("counts", [0.0, 3.0, 5.0])
def test_equal_counts_cost_nothing_and_have_no_gradient(counts: float) -> None:
    """5 of 5: the published share is 0/0."""
    logits, equal = Z.clone().requires_grad_(), torch.full((6,), counts, dtype=torch.float64)
    loss = ranking_loss(confidence(logits), share_right(equal, equal.min(), 5)).sum()
    loss.backward()
    assert loss == 0
    assert (logits.grad == 0).all()


def test_the_share_is_of_all_images_and_not_of_the_batch() -> None:
    """E − min over the data: the images that no batch shows now count too."""
    counts = torch.tensor([2.0, 3, 4, 1])
    assert share_right(counts[:3], counts.min(), 4).tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    method = make(counts, num_train=4)
    two = Batch((Z[:2],), Y[:2], torch.tensor([1, 2]))
    expected = by_loop([*confidence(Z[:2]).tolist(), 0.0], [2 / 3, 1.0, 0.0], 1)[0]
    assert method.training_step(two, Progress(4, 9, 0, 1)).logs["ranking"].item() == pytest.approx(expected)


def test_counts_are_written_by_index_after_the_step_alone() -> None:
    method = make(num_train=20)
    indices = torch.tensor([3, 1, 4, 15, 9, 2])
    batch, progress = Batch((Z,), Y, indices), Progress(0, 3, 0, 1)
    for times in (1, 2):
        found = method.training_step(batch, progress)
        assert method.counts.sum() == 3 * (times - 1), "only after_step writes"
        method.after_step(batch, found.carry, progress)
        assert method.counts[indices].tolist() == [times, 0, times, 0, times, 0]
        assert method.counts.sum() == 3 * times
    assert method.health()["count_spread"] == 2
    assert set(method.state_dict()) == {"counts"}


def test_in_the_first_epoch_one_epoch_counts_as_over() -> None:
    counts = torch.tensor([1.0, 0, 1, 1, 0, 0], dtype=torch.float64)
    found = step(make(counts), Z, Y, epoch=0).logs["ranking"].item()
    assert found == pytest.approx(sum(by_loop(confidence(Z).tolist(), counts.tolist(), 1)) / 6)
    assert step(make(), Z, Y, epoch=0).logs["ranking"] == 0


@every_confidence
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, kind: str) -> None:
    logits, labels = EXTREMES[case]
    for counts in (torch.zeros(6), torch.full((6,), 5.0), torch.arange(6.0)):
        method = make(counts, confidence=kind)
        assert_finite(lambda z, y, method=method: step(method, z, y).loss, logits, labels)


def test_what_is_refused() -> None:
    for settings, message in (({"weight": -1.0}, "weight"), ({"confidence": "energy"}, "energy")):
        with pytest.raises(UserError, match=message):
            build(CRL.Config, settings, "here")
