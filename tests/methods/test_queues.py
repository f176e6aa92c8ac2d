"""The feature queues and the momentum encoder that fills them."""

import pytest
import torch
from torch import nn

from benchmark.interface import Progress
from methods._queues import (
    KEY_STATISTICS,
    FeatureQueue,
    distance,
    momentum_copy,
    momentum_every_epoch,
    move_towards,
)


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
        queue.enqueue(numbers[:, None].expand(count, 2).float(), numbers % 3, numbers % 5, selected)
        expected = [*expected, *numbers[selected].tolist()][-7:]
        serial += count
        assert entries_in_order(queue) == expected
        kept = queue.features[:7, 0].long()
        filed = zip(kept.tolist(), queue.predicted[:7].tolist(), queue.true[:7].tolist(), strict=True)
        assert all((predicted, true) == (v % 3, v % 5) for v, predicted, true in filed if v)


def test_queue_is_full_when_exactly_filled_and_an_empty_block_is_no_op() -> None:
    queue, zeros = FeatureQueue(4, 1), torch.zeros(3, dtype=torch.long)
    queue.enqueue(torch.ones(3, 1), zeros, zeros, torch.tensor([True, True, True]))
    assert not queue.full()
    queue.enqueue(torch.ones(3, 1), zeros, zeros, torch.tensor([False, False, False]))
    assert int(queue.count) == 3
    queue.enqueue(torch.ones(1, 1), zeros[:1], zeros[:1], torch.tensor([True]))
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
        move_towards(list(key.parameters()), list(network.parameters()), 0.9)
    assert key.weight.flatten().tolist() == pytest.approx([0.271] * 4)
    assert not any(p.requires_grad for p in key.parameters())
    assert distance(key, network).item() == pytest.approx(1 - 0.271)


def test_released_cadence() -> None:
    """Copied at every step of the first epoch, then moved once per epoch, at its end."""

    def at(epoch: int, step: int) -> float:
        return momentum_every_epoch(0.999, Progress(epoch, 10, step, 5), start=3)

    assert [at(3, step) for step in range(5)] == [0.0] * 5
    assert [at(4, step) for step in range(5)] == [1.0, 1.0, 1.0, 1.0, 0.999]


def test_a_key_encoder_in_evaluation_mode_takes_the_networks_statistics() -> None:
    network = nn.Sequential(nn.BatchNorm1d(2))
    key = momentum_copy(network)
    network(torch.randn(8, 2))
    for mode, equal in (("train", False), ("eval", True)):
        KEY_STATISTICS[mode](key, network)
        assert torch.equal(key[0].running_mean, network[0].running_mean) == equal
