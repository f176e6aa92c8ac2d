"""CCL-SC and its combination with SAT+EM: when the loss starts, what it weighs, what it files, what it says."""

import pytest
import torch
from torch import Tensor, nn

from benchmark.interface import Batch, Progress, Task
from benchmark.measure.prediction import Prediction
from methods._contrastive import (
    WEIGHTS,
    ContrastConfig,
)
from methods.ccl_sc import ConfidenceAwareContrast
from methods.ccl_sc_sat_em import ContrastWithSelfAdaption
from methods.self_adaptive import SelfAdaptive


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
    (torch.tensor([[3.0, 0], [3, 1], [0, 2], [1, 4]]).reshape(4, 1, 1, 2),), torch.tensor([0, 1, 1, 0]), torch.arange(4)
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


@pytest.mark.parametrize("order", ["after", "before"])
def test_the_key_encoder_moves_towards_the_weights_after_or_before_the_step(order: str) -> None:
    """Weights 1, 2, 4, 8 and q = 0.5; a run resumed on the way has the same keys."""
    method, keys, aims = contrast(momentum_order=order, momentum=0.5), [], [2.0, 4.0, 8.0]
    for index, weight in enumerate(aims):
        if index == 2:
            resumed = contrast(momentum_order=order, momentum=0.5)
            resumed.load_state_dict(method.state_dict())
            method = resumed
        with torch.no_grad():
            method.network.scale.fill_(weight)  # type: ignore[union-attr,operator]
        method.after_step(WRONG_AND_RIGHT, None, Progress(0, 1, index, 3))
        keys.append(float(method.memory.key.scale))  # type: ignore[arg-type]
    assert keys == {"after": [1.5, 2.75, 5.375], "before": [1.0, 1.5, 2.75]}[order]


def test_frozen_is_algorithm_1() -> None:
    """Queues of 4 that get 2 a step: more than 4 are there after the third, and then nothing changes."""
    method = contrast(**ConfidenceAwareContrast.labels["CCL-SC frozen"])
    assert method.memory.before is not None
    active, counts = [], []
    for step in range(5):
        progress = Progress(0, 1, step, 5)
        active.append(float(method.training_step(WRONG_AND_RIGHT, progress).logs["contrast_active"]))
        method.after_step(WRONG_AND_RIGHT, None, progress)
        counts.append(int(method.memory.positives.count))
    assert active == [0, 0, 0, 1, 1]
    assert counts == [2, 4, 6, 6, 6]


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
