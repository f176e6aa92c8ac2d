"""The confidence-aware contrastive loss, its queues and its momentum encoder."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmark.interface import Batch, Progress, Task
from benchmark.prediction import Prediction
from methods._contrastive import (
    WEIGHTS,
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
    KEY_STATISTICS,
    FeatureQueue,
    Keys,
    distance,
    momentum_copy,
    momentum_every_epoch,
    move_towards,
)
from methods.ccl_sc import ConfidenceAwareContrast
from methods.ccl_sc_sat_em import ContrastWithSelfAdaption
from methods.self_adaptive import SelfAdaptive
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
        move_towards(key, network, 0.9)
    assert key.weight.flatten().tolist() == pytest.approx([0.271] * 4)
    assert not any(p.requires_grad for p in key.parameters())
    assert distance(key, network).item() == pytest.approx(1 - 0.271)


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
    positives, negatives = method.memory.positives, method.memory.negatives
    assert positives.predicted[:2].tolist() == positives.true[:2].tolist() == [0, 1]
    assert negatives.predicted[:2].tolist() == [0, 1]
    assert negatives.true[:2].tolist() == [1, 0]
    assert positives.features[0].tolist() == pytest.approx([1.0, 0.0])
    assert negatives.features[0].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])


@pytest.mark.parametrize("policy", ["rolling", "freeze"])
def test_loss_waits_for_full_queues_which_then_roll_or_freeze(policy: str) -> None:
    method, progress = contrast(queue_policy=policy), Progress(0, 1, 0, 1)
    active = []
    for _ in range(4):
        active.append(float(method.training_step(WRONG_AND_RIGHT, progress).logs["contrast_active"]))
        method.after_step(WRONG_AND_RIGHT, None, progress)
    assert active == [0, 0, 1, 1]
    assert int(method.memory.positives.count) == (8 if policy == "rolling" else 4)
    assert method.notes() == []
    assert {name: float(value) for name, value in method.health().items()} == {
        "positive_fill": 1.0, "negative_fill": 1.0, "key_distance": 0.0
    }  # fmt: skip


def test_the_loss_can_wait_while_the_queues_fill() -> None:
    method = contrast(fill_epochs=2)
    for _ in range(3):
        method.after_step(WRONG_AND_RIGHT, None, Progress(0, 5, 0, 1))
    active = [method.training_step(WRONG_AND_RIGHT, Progress(e, 5, 0, 1)).logs["contrast_active"] for e in range(4)]
    assert [float(value) for value in active] == [0, 0, 1, 1]


@pytest.mark.parametrize(("policy", "passes"), [("rolling", 6), ("freeze", 3)])
def test_full_frozen_queues_need_no_more_keys_from_the_next_epoch(policy: str, passes: int) -> None:
    """Two epochs of three steps; the queues are full after two. A resumed run rests where the unbroken one does."""
    method, seen = contrast(queue_policy=policy), []
    method.memory.key.register_forward_hook(lambda *_: seen.append(1))
    for epoch in range(2):
        for step in range(3):
            if epoch and step == 1:
                resumed = contrast(queue_policy=policy)
                resumed.load_state_dict(method.state_dict())
                assert resumed.memory.resting == method.memory.resting
            method.after_step(WRONG_AND_RIGHT, None, Progress(epoch, 2, step, 3))
        method.after_epoch(Progress(epoch, 2, 2, 3), None)
    assert len(seen) == passes


def test_a_loss_that_only_waited_says_so() -> None:
    method = contrast(fill_epochs=9)
    for _ in range(3):
        method.after_step(WRONG_AND_RIGHT, None, Progress(0, 5, 0, 1))
    assert "never started" in method.notes()[0]
    assert "wait 9 epochs" in method.notes()[0]


def test_random_queues_are_full_of_unit_noise_and_never_change() -> None:
    method = contrast(queue_policy="random")
    before = method.memory.positives.features.clone()
    assert float(method.training_step(WRONG_AND_RIGHT, Progress(0, 1, 0, 1)).logs["contrast_active"]) == 1
    method.after_step(WRONG_AND_RIGHT, None, Progress(0, 1, 0, 1))
    assert torch.equal(method.memory.positives.features[:4], before[:4])
    assert before.norm(dim=1).tolist() == pytest.approx([1.0] * 5)


def test_a_key_encoder_in_evaluation_mode_takes_the_networks_statistics() -> None:
    network = nn.Sequential(nn.BatchNorm1d(2))
    key = momentum_copy(network)
    network(torch.randn(8, 2))
    for mode, equal in (("train", False), ("eval", True)):
        KEY_STATISTICS[mode](key, network)
        assert torch.equal(key[0].running_mean, network[0].running_mean) == equal


def test_released_form_and_supcon_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="no meaning"):
        ContrastConfig(negatives="supcon", loss_form="released")


class TinyWithAbstention(Tiny):
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        flat = images.flatten(1) * self.scale
        return torch.cat([flat, 0.5 * flat[:, :1] + 1], 1), flat


@pytest.mark.parametrize("form", ["replace", "add"])
def test_the_combination_is_the_sum_of_its_parts(form: str) -> None:
    """SAT+EM and w·CSC on the same outputs; the public code adds cross-entropy over all outputs."""
    progress, task = Progress(0, 1, 0, 1), Task(2, 8, 2)
    settings = {"queue_size": 4, "warmup_epochs": 0, "weight": 0.7}
    config = ContrastWithSelfAdaption.Config(entropy_weight=0.3, combination=form, **settings)
    method = ContrastWithSelfAdaption(TinyWithAbstention(), task, config)
    adaptive = SelfAdaptive(TinyWithAbstention(), task, SelfAdaptive.Config(entropy_weight=0.3))
    for _ in range(2):
        method.after_step(WRONG_AND_RIGHT, torch.ones(4), progress)
    outputs, features = method.network(WRONG_AND_RIGHT.images)
    contrast_part, _ = method.memory.loss(outputs, features, WRONG_AND_RIGHT.labels, progress)
    expected = adaptive.training_step(WRONG_AND_RIGHT, progress).loss + contrast_part
    if form == "add":
        expected = expected + torch.nn.functional.cross_entropy(outputs, WRONG_AND_RIGHT.labels)
    step = method.training_step(WRONG_AND_RIGHT, progress)
    torch.testing.assert_close(step.loss, expected)
    assert contrast_part.item() > 0
    method.after_step(WRONG_AND_RIGHT, step.carry, progress)
    assert torch.equal(method.target[:4], step.carry)


def test_the_combination_files_keys_by_class_and_is_ranked_by_softmax_response() -> None:
    method = ContrastWithSelfAdaption(
        TinyWithAbstention(), Task(2, 8, 2), ContrastWithSelfAdaption.Config(queue_size=4, warmup_epochs=0)
    )
    method.after_step(WRONG_AND_RIGHT, torch.ones(4), Progress(0, 1, 0, 1))
    assert method.memory.negatives.predicted[:2].tolist() == [0, 1], "the abstention output is no class"
    prediction = method.predict(WRONG_AND_RIGHT.images)
    stored = Prediction(
        prediction.logits.detach().numpy(), None, {"abstain": prediction.aux["abstain"].detach().numpy()}
    )
    assert list(method.scores(stored)) == ["SR", "abstention"]


def test_weights_of_outputs_with_abstention() -> None:
    outputs = torch.tensor([[1.0, 0.0, 3.0]])
    p = torch.softmax(outputs, 1)
    assert WEIGHTS["sr_outputs"](outputs, 2).item() == pytest.approx(p.max().item())
    assert WEIGHTS["sr"](outputs, 2).item() == pytest.approx(torch.softmax(outputs[:, :2], 1).max().item())


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
    assert not WEIGHTS["sr"](logits, 2).requires_grad
