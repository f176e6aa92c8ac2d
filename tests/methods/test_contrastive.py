"""The confidence-aware contrastive loss and the other losses of its family."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from methods._contrastive import (
    ContrastConfig,
    as_many_as_own,
    as_many_as_the_queue,
    csc_loss,
    paper_pair_loss,
    random_others,
    released_pair_loss,
    supcon_loss,
)
from methods._queues import (
    Keys,
)
from tests.conftest import ROOT

TAU = 0.1


def pair(loss: object, s_p: float, s_n: list[float]) -> tuple[float, list[float]]:
    """Value and gradient with respect to (s_p, s_n…) of one (anchor, positive) pair."""
    similarities = torch.tensor([s_p, *s_n], dtype=torch.float64, requires_grad=True)
    negatives = similarities[None, 1:] if s_n else torch.full((1, 1), -1e9 * TAU, dtype=torch.float64)
    value = loss(similarities[None, :1] / TAU, [negatives / TAU], TAU).sum()  # type: ignore[operator]
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
POSITIVES = Keys(tensor([[0.8, 0.6], [0.6, -0.8], [0, 1]]), torch.tensor([0, 0, 1]), torch.tensor([0, 0, 1]))
NEGATIVES = Keys(tensor([[0.6, 0.8], [-1, 0], [0.8, 0.6]]), torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0]))


def test_oracle_of_two_anchors() -> None:
    anchors = ANCHORS.clone().requires_grad_()
    losses = csc_loss(anchors, LABELS, WEIGHT, POSITIVES, NEGATIVES, TAU)
    assert losses.tolist() == pytest.approx([0.36903387, 0.89195037], abs=1e-8)
    losses.mean().backward()
    expected = tensor([[-0.05364157, 1.85364130], [1.66403677, -0.83201839]])
    torch.testing.assert_close(anchors.grad, expected, atol=1e-8, rtol=0)
    released = csc_loss(ANCHORS, LABELS, WEIGHT, POSITIVES, NEGATIVES, TAU, released_pair_loss)
    assert released.mean().item() == pytest.approx(-0.28450788, abs=1e-8)


def brute_force(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    positives: Keys,
    negatives: Keys,
    is_negative: Callable[[bool, int, int, int], bool],
) -> list[float]:
    """Pair by pair; `is_negative(from the wrong queue, predicted class, true class, y)`."""
    losses = []
    for z, y, w in zip(features, labels.tolist(), weight, strict=True):
        own = [v for v, c in zip(positives.features, positives.predicted, strict=True) if c == y]
        foes = sum(
            torch.exp(z @ v / TAU)
            for keys in (positives, negatives)
            for v, predicted, true in zip(keys.features, keys.predicted.tolist(), keys.true.tolist(), strict=True)
            if is_negative(keys is negatives, predicted, true, y)
        )
        terms = [torch.log(torch.exp(z @ v / TAU) + foes) - z @ v / TAU for v in own]
        losses.append(float(w * sum(terms) / len(terms)) if terms else 0.0)
    return losses


def random_case() -> tuple[Tensor, Tensor, Tensor, Keys, Keys]:
    g = torch.Generator().manual_seed(0)

    def unit(n: int) -> Tensor:
        return torch.nn.functional.normalize(torch.randn(n, 6, generator=g, dtype=torch.float64))

    right = torch.randint(0, 4, (30,), generator=g)  # class 4 has no positives
    wrong = torch.randint(1, 5, (30,), generator=g)  # class 0 has no negatives
    true = (wrong + torch.randint(1, 5, (30,), generator=g)) % 5
    weight = torch.rand(20, generator=g, dtype=torch.float64)
    return unit(20), torch.arange(20) % 5, weight, Keys(unit(30), right, right), Keys(unit(30), wrong, true)


RULES: dict[str, tuple[dict[str, str], Callable[[bool, int, int, int], bool]]] = {
    "own": ({}, lambda wrong, predicted, true, y: wrong and predicted == y),
    "sc2": ({"negatives": "sc2"}, lambda wrong, predicted, true, y: (wrong and predicted == y) or true != y),
    "sc2, predicted class": (
        {"negatives": "sc2", "other_class": "predicted"},
        lambda wrong, predicted, true, y: (wrong and predicted == y) or predicted != y,
    ),
    "sc2, right queue": (
        {"negatives": "sc2", "other_queues": "positives"},
        lambda wrong, predicted, true, y: predicted == y if wrong else true != y,
    ),
    "sc2, wrong queue": (
        {"negatives": "sc2", "other_queues": "negatives"},
        lambda wrong, predicted, true, y: wrong and (predicted == y or true != y),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_equals_the_definition_pair_by_pair(rule: str) -> None:
    settings, is_negative = RULES[rule]
    features, labels, weight, positives, negatives = random_case()
    loss = ContrastConfig(**settings).contrast()  # type: ignore[arg-type]
    losses = loss(features, labels, weight, positives, negatives, TAU)
    expected = brute_force(features, labels, weight, positives, negatives, is_negative)
    assert losses.tolist() == pytest.approx(expected, abs=1e-9)
    features.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, labels, weight, positives, negatives, TAU), features)


@pytest.mark.parametrize("queues", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("count", [as_many_as_own, as_many_as_the_queue])
def test_random_others_draws_so_many_of_other_classes_and_never_an_own_negative(
    queues: tuple[bool, bool], count: Callable[[Tensor], Tensor]
) -> None:
    _, labels, _, positives, negatives = random_case()
    torch.manual_seed(0)
    drawn = random_others(labels, positives, negatives, queues, "true", count)
    own = labels[:, None] == negatives.predicted
    allowed = torch.cat(
        [(labels[:, None] != positives.true) & queues[0], (labels[:, None] != negatives.true) & ~own & queues[1]], 1
    )
    chosen = torch.cat([mask for mask in drawn if mask is not None], 1)
    assert not (chosen & ~allowed).any()
    expected = torch.minimum(count(own)[:, 0], allowed.sum(1))
    assert chosen.sum(1).tolist() == expected.tolist()


def test_random_others_draws_every_allowed_entry_equally_often() -> None:
    _, labels, _, positives, negatives = random_case()
    torch.manual_seed(0)
    times = torch.zeros(20, 60)
    for _ in range(2000):
        drawn = random_others(labels, positives, negatives, (True, True), "true", as_many_as_own)
        times += torch.cat([mask for mask in drawn if mask is not None], 1)
    anchor = 1
    own = (labels[:, None] == negatives.predicted)[anchor].sum().item()
    seen = times[anchor][times[anchor] > 0]
    expected = 2000 * own / len(seen)
    assert (seen - expected).abs().max() < 5 * (expected * (1 - own / len(seen))) ** 0.5


def supcon_of(features: Tensor, labels: Tensor) -> list[float]:
    """Each image against all others, which are spread over both queues."""
    losses = []
    for i in range(len(labels)):
        others = [j for j in range(len(labels)) if j != i]
        keys = [Keys(features[part], labels[part], labels[part]) for part in (others[:1], others[1:])]
        weight = torch.ones(1, dtype=torch.float64)
        losses.append(supcon_loss(features[i : i + 1], labels[i : i + 1], weight, *keys, TAU).item())
    return losses


def test_supcon_oracles() -> None:
    first = supcon_of(tensor([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]]), torch.tensor([0, 0, 1, 1]))
    assert first == pytest.approx([0.00033624, 0.12722344, 0.12722344, 0.00033624], abs=1e-8)
    assert sum(first) / 4 == pytest.approx(0.06377984, abs=1e-8)
    second = supcon_of(tensor([[1, 0], [0.8, 0.6], [0.6, 0.8], [-1, 0]]), torch.tensor([0, 0, 0, 1]))
    assert second == pytest.approx([1.12692802, 0.98390076, 1.82695726, 0.0], abs=1e-8)
    assert sum(second) / 4 == pytest.approx(0.98444651, abs=1e-8)


def test_supcon_goes_by_true_labels_over_the_chosen_queues() -> None:
    features, labels, weight, positives, negatives = random_case()
    features.requires_grad_()
    loss = ContrastConfig(negatives="supcon", other_queues="negatives").contrast()
    losses = loss(features, labels, weight, positives, negatives, TAU)
    z, y = features[3], labels[3]
    similar = negatives.features @ z / TAU
    expected = weight[3] * -(torch.log_softmax(similar, 0)[negatives.true == y]).mean()
    torch.testing.assert_close(losses[3], expected)
    assert torch.autograd.gradcheck(lambda f: loss(f, labels, weight, positives, negatives, TAU), features)


@pytest.mark.parametrize("negatives", ["own", "sc2", "sc3", "supcon"])
def test_nothing_larger_than_batch_times_queue_is_built(negatives: str) -> None:
    """At K = 50,000, B = 64, D = 512 that, and the tensors it takes at once, bound the memory."""
    batch, size, dim = 16, 1000, 8

    class Sizes(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(tensor, Tensor):
                    self.largest = max(self.largest, tensor.numel())
            return out

    g = torch.Generator().manual_seed(0)
    queues = [
        Keys(
            torch.randn(size, dim, generator=g),
            torch.randint(9, (size,), generator=g),
            torch.randint(9, (size,), generator=g),
        )
        for _ in range(2)
    ]
    features = torch.randn(batch, dim, generator=g, requires_grad=True)
    loss = ContrastConfig(negatives=negatives).contrast()  # type: ignore[arg-type]
    with Sizes() as sizes:
        loss(features, torch.arange(batch) % 9, torch.ones(batch), *queues, TAU).mean().backward()
    assert sizes.largest == batch * size


@pytest.mark.parametrize("negatives", ["own", "sc2", "sc3", "supcon"])
def test_memory_at_the_largest_published_queue(negatives: str) -> None:
    """Forward and backward at K = 50,000, B = 64, D = 512 take less than 300 MB beyond the queues."""
    script = f"""
import torch
from methods._contrastive import ContrastConfig, Keys
torch.set_num_threads(1)
loss = ContrastConfig(negatives="{negatives}").contrast()
def run(size):
    classes = torch.arange(size) % 100
    queues = [Keys(torch.nn.functional.normalize(torch.randn(size, 512)), classes, (classes + i) % 100) for i in (0, 1)]
    features = torch.randn(64, 512, requires_grad=True)
    open("/proc/self/clear_refs", "w").write("5")
    status = lambda key: next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
    before = status("VmRSS")
    loss(features, torch.arange(64) % 100, torch.ones(64), *queues, 0.1).mean().backward()
    return (status("VmHWM") - before) / 1024
run(100)
print(run(50_000))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    if "Permission" in run.stderr or "clear_refs" in run.stderr:
        pytest.skip("this system does not let a process reset its memory high-water mark")
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 300


def test_empty_sets_give_zero_and_no_nan() -> None:
    anchors = ANCHORS.float().requires_grad_()
    nothing = Keys(torch.zeros(3, 2), torch.full((3,), -1), torch.full((3,), -1))
    csc_loss(anchors, LABELS, WEIGHT.float(), nothing, nothing, TAU).sum().backward()
    assert (anchors.grad == 0).all()
    supcon_loss(anchors, LABELS, WEIGHT.float(), nothing, nothing, TAU).sum().backward()
    some = Keys(POSITIVES.features.float(), POSITIVES.predicted, POSITIVES.true)
    csc_loss(anchors, LABELS, WEIGHT.float(), some, nothing, TAU).sum().backward()
    assert (anchors.grad == 0).all()
