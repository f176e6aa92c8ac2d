"""The confidence-aware contrastive loss, its queues and its momentum encoder."""

import pytest
import torch
from torch import Tensor, nn

from benchmark.interface import Batch, Progress, Task
from methods._contrastive import (
    FeatureQueue,
    csc_loss,
    momentum_copy,
    momentum_every_epoch,
    move_towards,
    paper_pair_loss,
    released_pair_loss,
)
from methods.ccl_sc import ConfidenceAwareContrast

TAU = 0.1


def pair(loss: object, s_p: float, s_n: list[float]) -> tuple[float, list[float]]:
    """Value and gradient with respect to (s_p, s_n…) of one (anchor, positive) pair."""
    similarities = torch.tensor([s_p, *s_n], dtype=torch.float64, requires_grad=True)
    negatives = similarities[None, 1:] if s_n else torch.full((1, 1), -1e9 * TAU, dtype=torch.float64)
    value = loss(similarities[None, :1] / TAU, negatives / TAU, TAU).sum()  # type: ignore[operator]
    value.backward()
    return value.item(), similarities.grad.tolist()


@pytest.mark.parametrize(
    ("s_p", "s_n", "paper", "released", "paper_gradient", "released_gradient"),
    [
        (0.8, [0.5, 0.2], 0.050946, -0.749054, [-0.497, 0.473, 0.024], [-1.497, 0.473, 0.024]),
        (0.3, [0.5], 2.126928, -0.173072, [-8.808, 8.808], [0.192, -1.192]),
        (0.3, [0.5, 0.45, 0.1], 2.565417, 0.265417, [-9.231, 5.681, 3.446, 0.104], [-0.231, -4.319, 3.446, 0.104]),
        (0.6, [], 0.0, -0.6, [0.0], [-1.0]),
    ],
)
def test_unit_values(
    s_p: float,
    s_n: list[float],
    paper: float,
    released: float,
    paper_gradient: list[float],
    released_gradient: list[float],
) -> None:
    value, gradient = pair(paper_pair_loss, s_p, s_n)
    assert value == pytest.approx(paper, abs=1e-6)
    assert gradient == pytest.approx(paper_gradient, abs=1e-3)
    value, gradient = pair(released_pair_loss, s_p, s_n)
    assert value == pytest.approx(released, abs=1e-6)
    assert gradient == pytest.approx(released_gradient, abs=1e-3)


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


ANCHORS, LABELS, WEIGHT = tensor([[1, 0], [0.6, 0.8]]), torch.tensor([0, 1]), tensor([0.9, 0.5])
POSITIVES = (tensor([[0.8, 0.6], [0.6, -0.8], [0, 1]]), torch.tensor([0, 0, 1]))
NEGATIVES = (tensor([[0.6, 0.8], [-1, 0], [0.8, 0.6]]), torch.tensor([0, 0, 1]))


def test_oracle_of_two_anchors() -> None:
    anchors = ANCHORS.clone().requires_grad_()
    losses = csc_loss(anchors, LABELS, WEIGHT, POSITIVES, NEGATIVES, TAU)
    assert losses.tolist() == pytest.approx([0.36903387, 0.89195037], abs=1e-8)
    losses.mean().backward()
    expected = tensor([[-0.05364157, 1.85364130], [1.66403677, -0.83201839]])
    torch.testing.assert_close(anchors.grad, expected, atol=1e-8, rtol=0)
    released = csc_loss(ANCHORS, LABELS, WEIGHT, POSITIVES, NEGATIVES, TAU, released_pair_loss)
    assert released.mean().item() == pytest.approx(-0.28450788, abs=1e-8)


def brute_force(features: Tensor, labels: Tensor, weight: Tensor, positives: tuple, negatives: tuple) -> list[float]:
    losses = []
    for z, y, w in zip(features, labels, weight, strict=True):
        own = [v for v, c in zip(*positives, strict=True) if c == y]
        foes = sum(torch.exp(z @ v / TAU) for v, c in zip(*negatives, strict=True) if c == y)
        terms = [torch.log(torch.exp(z @ v / TAU) + foes) - z @ v / TAU for v in own]
        losses.append(float(w * sum(terms) / len(terms)) if terms else 0.0)
    return losses


def test_equals_the_definition_pair_by_pair() -> None:
    g = torch.Generator().manual_seed(0)

    def unit(n: int) -> Tensor:
        return torch.nn.functional.normalize(torch.randn(n, 6, generator=g, dtype=torch.float64))

    features, labels, weight = unit(20), torch.arange(20) % 5, torch.rand(20, generator=g, dtype=torch.float64)
    positives = (unit(30), torch.randint(0, 4, (30,), generator=g))  # class 4 has no positives
    negatives = (unit(30), torch.randint(1, 5, (30,), generator=g))  # class 0 has no negatives
    losses = csc_loss(features, labels, weight, positives, negatives, TAU)
    assert losses.tolist() == pytest.approx(brute_force(features, labels, weight, positives, negatives), abs=1e-9)
    features.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: csc_loss(z, labels, weight, positives, negatives, TAU), features)


def test_empty_sets_give_zero_and_no_nan() -> None:
    anchors = ANCHORS.float().requires_grad_()
    nothing = (torch.zeros(3, 2), torch.full((3,), -1))
    csc_loss(anchors, LABELS, WEIGHT.float(), nothing, nothing, TAU).sum().backward()
    assert (anchors.grad == 0).all()
    some = (POSITIVES[0].float(), POSITIVES[1])
    csc_loss(anchors, LABELS, WEIGHT.float(), some, nothing, TAU).sum().backward()
    assert (anchors.grad == 0).all()


def entries_in_order(queue: FeatureQueue) -> list[int]:
    """What the queue holds, oldest first; the features carry a serial number."""
    pointer, values = int(queue.pointer), queue.features[: queue.size, 0].long().tolist()
    return [v for v in values[pointer:] + values[:pointer] if v]


def test_queue_against_a_list_over_random_blocks() -> None:
    g = torch.Generator().manual_seed(1)
    queue, expected, serial = FeatureQueue(7, 2), [], 1
    for _ in range(40):
        count = int(torch.randint(1, 12, (1,), generator=g))
        selected = torch.rand(count, generator=g) < 0.6
        numbers = torch.arange(serial, serial + count)
        queue.enqueue(numbers[:, None].expand(count, 2).float(), numbers % 3, selected)
        expected = [*expected, *numbers[selected].tolist()][-7:]
        serial += count
        assert entries_in_order(queue) == expected
        kept = queue.features[:7, 0].long()
        filed = queue.labels[:7]
        assert all(int(c) == int(v) % 3 for v, c in zip(kept, filed, strict=True) if v)


def test_queue_is_full_when_exactly_filled_and_an_empty_block_is_no_op() -> None:
    queue = FeatureQueue(4, 1)
    queue.enqueue(torch.ones(3, 1), torch.zeros(3, dtype=torch.long), torch.tensor([True, True, True]))
    assert not queue.full()
    queue.enqueue(torch.ones(3, 1), torch.zeros(3, dtype=torch.long), torch.tensor([False, False, False]))
    assert int(queue.count) == 3
    queue.enqueue(torch.ones(1, 1), torch.zeros(1, dtype=torch.long), torch.tensor([True]))
    assert queue.full()
    assert int(queue.pointer) == 0


def test_momentum_update() -> None:
    network = nn.Linear(2, 2)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    key = momentum_copy(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(1.0)
    assert all((p == 0).all() for p in key.parameters()), "a copy, not a view"
    for _ in range(3):
        move_towards(key, network, 0.9)
    assert key.weight.flatten().tolist() == pytest.approx([0.271] * 4)
    assert not any(p.requires_grad for p in key.parameters())


def test_released_cadence() -> None:
    """Copied at every step of the first epoch, then moved once per epoch, at its end."""

    def at(epoch: int, step: int) -> float:
        return momentum_every_epoch(0.999, Progress(epoch, 10, step, 5), start=3)

    assert [at(3, step) for step in range(5)] == [0.0] * 5
    assert [at(4, step) for step in range(5)] == [1.0, 1.0, 1.0, 1.0, 0.999]


class Tiny(nn.Module):
    """Features are the input; the logits too, so that a test decides what is right and wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        flat = images.flatten(1) * self.scale
        return flat, flat


def contrast(**settings: object) -> ConfidenceAwareContrast:
    config = ConfidenceAwareContrast.Config(queue_size=4, warmup_epochs=0, **settings)  # type: ignore[arg-type]
    return ConfidenceAwareContrast(Tiny(), Task(2, 8, 2), config)


WRONG_AND_RIGHT = Batch(
    (tensor([[3, 0], [3, 1], [0, 2], [1, 4]]).float().reshape(4, 1, 1, 2),), torch.tensor([0, 1, 1, 0]), torch.arange(4)
)


def test_queues_file_keys_under_the_predicted_class() -> None:
    method = contrast()
    method.after_step(WRONG_AND_RIGHT, None, Progress(0, 1, 0, 1))
    assert method.positives.labels[:2].tolist() == [0, 1]
    assert method.negatives.labels[:2].tolist() == [0, 1]
    assert method.positives.features[0].tolist() == pytest.approx([1.0, 0.0])
    assert method.negatives.features[0].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])


@pytest.mark.parametrize("policy", ["rolling", "freeze"])
def test_loss_waits_for_full_queues_which_then_roll_or_freeze(policy: str) -> None:
    method, progress = contrast(queue_policy=policy), Progress(0, 1, 0, 1)
    active = []
    for _ in range(4):
        active.append(float(method.training_step(WRONG_AND_RIGHT, progress).logs["contrast_active"]))
        method.after_step(WRONG_AND_RIGHT, None, progress)
    assert active == [0, 0, 1, 1]
    assert int(method.positives.count) == (8 if policy == "rolling" else 4)
    assert method.notes() == []


def test_a_run_in_which_it_never_started_says_so() -> None:
    assert "never started" in contrast().notes()[0]


def test_weights_and_anchors() -> None:
    full = contrast()
    for _ in range(2):
        full.after_step(WRONG_AND_RIGHT, None, Progress(0, 1, 0, 1))
    losses = {}
    for name, settings in {"sr": {}, "none": {"weighting": "none"}, "correct": {"anchors": "correct"}}.items():
        method = contrast(**settings)
        method.load_state_dict(full.state_dict())
        losses[name] = float(method.training_step(WRONG_AND_RIGHT, Progress(0, 1, 0, 1)).logs["contrast"])
    assert losses["none"] > losses["sr"] > losses["correct"] > 0


def test_the_weight_is_not_trained() -> None:
    """The published gradient treats SR as a constant."""
    logits = torch.randn(4, 2, requires_grad=True)
    from methods.ccl_sc import softmax_response

    assert not softmax_response(logits).requires_grad
