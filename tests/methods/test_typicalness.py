"""TAL in both forms against plain loops, its queue of feature statistics, and what it does before that has entries."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Prediction, Progress, Step, Task
from benchmark.measure.scores import cosine_logit, softmax_response
from methods.logit_norm import direction
from methods.typicalness import TypicalnessAware, length, nearest, statistics, typicalness
from tests.methods.extremes import EXTREMES, Y, Z, assert_finite

FEATURES = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
EPOCH = Progress(5, 10, 0, 1)
every_form = pytest.mark.parametrize("form", ["paper", "released"])


def make(entries: Tensor | None = None, features: Tensor = FEATURES, **settings: object) -> TypicalnessAware:
    """A method whose network returns what it is given, and these features; (mean, std) pairs are in its queue."""
    config = TypicalnessAware.Config(**{"queue_size": 8, **settings})  # type: ignore[arg-type]
    method = TypicalnessAware(lambda images: (images, features[: len(images)]), Task(3, 20, 5), config)
    method.queue.features = method.queue.features.double()
    if entries is not None:
        labels = torch.zeros(len(entries), dtype=torch.long)
        method.queue.enqueue(entries, labels, labels, labels == 0)
    return method


def step(method: TypicalnessAware, logits: Tensor, labels: Tensor, progress: Progress = EPOCH) -> Step:
    return method.training_step(Batch((logits,), labels, torch.arange(len(labels))), progress)


def ce(z: list[float], label: int) -> float:
    return max(z) + math.log(sum(math.exp(u - max(z)) for u in z)) - z[label]


def by_loop(entries: list[list[float]], labels: Tensor, form: str) -> float:
    """Image by image, in plain numbers."""
    rows, distances = Z.tolist(), []
    for f in FEATURES.tolist():
        mean = sum(f) / len(f)
        std = math.sqrt(sum((x - mean) ** 2 for x in f) / (len(f) - 1))
        distances.append(min(math.hypot(mean - m, std - s) for m, s in entries))
    least, most = min(distances), max(distances)
    right = [row.index(max(row)) == label for row, label in zip(rows, labels.tolist(), strict=True)]
    turned, plain, taus = [], [], []
    for row, label, d, ok in zip(rows, labels.tolist(), distances, right, strict=True):
        tau = 1 - (d - least) / (most - least)
        if form == "released":
            tau = 1.0 if all(right) else tau
            scale = 10 + (1 - tau) * 90 if ok else 20.0
            tau = tau if ok else 1.0
        else:
            tau = tau if ok else 1.0
            scale = 10 + (1 - tau) * 90
        norm = math.sqrt(sum(u * u for u in row)) + 1e-7
        turned.append(ce([scale * u / norm for u in row], label))
        plain.append(ce(row, label))
        taus.append(tau)
    if form == "released":
        tau = sum(taus) / 6
        return tau * sum(turned) / 6 + (1 - tau) * sum(plain) / 6
    return sum(tau * a + (1 - tau) * b for tau, a, b in zip(taus, turned, plain, strict=True)) / 6


ENTRIES = torch.tensor([[0.1, 0.9], [-0.3, 1.4], [0.0, 0.5]], dtype=torch.float64)


@every_form
@pytest.mark.parametrize("labels", [Y, Z.argmax(1), (Z.argmax(1) + 1) % 3], ids=["three right", "all", "none"])
def test_equals_a_plain_loop(form: str, labels: Tensor) -> None:
    found = step(make(ENTRIES, form=form), Z, labels).loss.item()
    assert found == pytest.approx(by_loop(ENTRIES.tolist(), labels, form), rel=1e-9)


def test_the_forms_differ_where_typicalness_does() -> None:
    paper, released = (step(make(ENTRIES, form=form), Z, Y).loss.item() for form in ("paper", "released"))
    assert abs(paper - released) > 0.01


def test_statistics_and_distances() -> None:
    found = statistics(FEATURES)
    torch.testing.assert_close(found[:, 0], FEATURES.mean(1))
    torch.testing.assert_close(found[:, 1], FEATURES.std(1))
    queue = make(ENTRIES).queue
    expected = (found[:, None] - ENTRIES).square().sum(2).sqrt().amin(1)
    torch.testing.assert_close(nearest(found, queue), expected)
    assert statistics(torch.ones(3, 1))[:, 1].tolist() == [0, 0, 0]


def test_typicalness_by_the_batch() -> None:
    assert typicalness(torch.tensor([3.0, 1.0, 2.0])).tolist() == [0, 1, 0.5]
    assert typicalness(torch.full((3,), 4.0)).tolist() == [1, 1, 1]
    assert typicalness(torch.tensor([7.0])).tolist() == [1]
    assert length(torch.tensor([0.0, 0.5, 1.0]), 10, 100).tolist() == [100, 55, 10]


@every_form
@pytest.mark.parametrize(("entries", "epoch"), [(None, 5), (ENTRIES, 0)], ids=["empty queue", "first epochs"])
def test_until_distances_count_all_is_typical(form: str, entries: Tensor | None, epoch: int) -> None:
    labels = Z.argmax(1)
    found = step(make(entries, form=form, start=0.1), Z, labels, Progress(epoch, 10, 0, 1))
    assert found.loss.item() == pytest.approx(cross_entropy(10 * direction(Z), labels).item(), rel=1e-12)
    assert found.logs["typicalness"] == 1


def test_the_share_of_epochs_before_distances_count() -> None:
    for epoch, counts in ((0, False), (1, False), (2, True)):
        tau = step(make(ENTRIES, start=0.25), Z, Y, Progress(epoch, 10, 0, 1)).logs["typicalness"]
        assert (tau < 1) == counts


@every_form
def test_no_gradient_through_the_typicalness(form: str) -> None:
    features = FEATURES.clone().requires_grad_()
    logits = Z.clone().requires_grad_()
    step(make(ENTRIES, features, form=form), logits, Y).loss.backward()
    assert features.grad is None
    assert logits.grad.abs().sum() > 0
    assert torch.autograd.gradcheck(lambda z: step(make(ENTRIES, form=form), z, Y).loss, Z.clone().requires_grad_())


def test_the_queue_takes_right_predictions_after_the_step_and_keeps_the_newest() -> None:
    method = make(queue_size=4)
    batch = Batch((Z,), Y, torch.arange(6))
    found = method.training_step(batch, EPOCH)
    assert method.queue.count == 0
    method.after_step(batch, found.carry, EPOCH)
    assert method.queue.count == 3
    torch.testing.assert_close(method.queue.features[:3], statistics(FEATURES)[[0, 2, 4]])
    assert method.health()["queue_fill"] == 0.75
    method.after_step(batch, method.training_step(batch, EPOCH).carry, EPOCH)
    torch.testing.assert_close(method.queue.features[:4], statistics(FEATURES)[[2, 4, 4, 0]])
    assert step(method, Z, Z.argmax(1)).logs["typicalness"] < 1


def test_the_queue_is_no_longer_than_the_training_split() -> None:
    assert make(queue_size=30_000).queue.size == 20


@every_form
@pytest.mark.parametrize("case", EXTREMES)
def test_finite_at_the_extremes(case: str, form: str) -> None:
    logits, labels = EXTREMES[case]
    for entries in (None, ENTRIES.float()):
        method = make(entries, FEATURES.float(), form=form)
        assert_finite(lambda z, y, method=method: step(method, z, y).loss, logits, labels)
        constant = make(entries, torch.ones(6, 5), form=form)
        assert_finite(lambda z, y, method=constant: step(method, z, y).loss, logits, labels)


def test_scores() -> None:
    stored = Prediction(Z.numpy())
    found = TypicalnessAware.scores(stored)
    assert list(found) == ["cosine logit", "SR"], "the published one first"
    assert found["cosine logit"].tolist() == cosine_logit(stored.logits).tolist()
    assert found["SR"].tolist() == softmax_response(stored.logits).tolist()


def test_what_is_refused() -> None:
    for settings, message in (({"shortest": 200.0}, "shortest"), ({"form": "other"}, "other"), ({"start": 2}, "start")):
        with pytest.raises(UserError, match=message):
            build(TypicalnessAware.Config, settings, "here")
