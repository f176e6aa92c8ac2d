"""AdaFocal: the loss with gammas of both signs, their update, the validation bins, and the state in between."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.interface import Batch, Progress, Task, Validation
from benchmark.measure.prediction import Prediction
from methods.adafocal import BINNINGS, AdaFocal, adafocal_loss, interpolated_bins, split_bins, updated_gammas
from tests.fixtures import F6_LABELS, F6_LOGITS

Z, Y = torch.tensor(F6_LOGITS), torch.tensor(F6_LABELS)
LOGITS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
LABELS = torch.arange(12) % 4
GAMMAS = torch.tensor([-2.0, -1.0, -0.2, 0.2, 1.0, 20.0] * 2, dtype=torch.float64)
PROGRESS = Progress(0, 1, 0, 1)


def make(**settings: object) -> AdaFocal:
    return AdaFocal(lambda images: (images, None), Task(2, 6, 3), AdaFocal.Config(**settings))


def step_loss(method: AdaFocal, logits: Tensor, labels: Tensor) -> Tensor:
    return method.training_step(Batch((logits,), labels, labels), PROGRESS).loss


def two_classes(p: list[float]) -> Tensor:
    """Logits with the given probabilities of class 0."""
    first = torch.tensor(p)
    return torch.stack([first.log(), (1 - first).log()], 1)


def test_loss_of_f6() -> None:
    gammas = torch.tensor([1, -0.5, 20, -2, 0.2, 3], dtype=torch.float64)
    loss = adafocal_loss(Z, Y, gammas)
    expected = [0.05173786, 1.27188504, 0, 2.18087285, 0.08058377, 0.32985776]
    assert loss.tolist() == pytest.approx(expected, abs=1e-8)
    assert loss.mean().item() == pytest.approx(0.65248955, abs=1e-8)


def test_loss_equals_a_plain_loop() -> None:
    loss = adafocal_loss(LOGITS, LABELS, GAMMAS).tolist()
    for i, gamma in enumerate(GAMMAS.tolist()):
        powers = [math.exp(z) for z in LOGITS[i].tolist()]
        p = powers[LABELS[i]] / sum(powers)
        assert loss[i] == pytest.approx(-((1 - math.copysign(p, gamma)) ** abs(gamma)) * math.log(p), rel=1e-12)


def test_gradient_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(lambda z: adafocal_loss(z, LABELS, GAMMAS), LOGITS.clone().requires_grad_())


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        pytest.param(200 * torch.eye(3)[:1], [0], id="right by 200"),
        pytest.param(200 * torch.eye(3)[:1], [1], id="wrong by 200"),
        pytest.param(torch.zeros(1, 3), [2], id="uniform"),
    ],
)
@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize("gamma", [-2.0, -0.2, 0.2, 20.0])
def test_finite_at_the_extremes(logits: Tensor, labels: list[int], size: int, gamma: float) -> None:
    method = make()
    method.gammas.fill_(gamma)
    logits = logits.repeat(size, 1).requires_grad_()
    loss = step_loss(method, logits, torch.tensor(labels * size))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


def test_update() -> None:
    gammas = torch.tensor([1, 1, 0.21, -0.21, -1.9, 19.5, -1], dtype=torch.float64)
    gaps = torch.tensor([0.1, -0.1, -0.1, 0.1, -0.2, 0.1, 0.1], dtype=torch.float64)
    expected = [1.10517092, 0.90483742, -0.2, 0.2, -2, 20, -0.90483742]
    assert updated_gammas(gammas, gaps, 1.0, 0.2, -2.0, 20.0).tolist() == pytest.approx(expected, abs=1e-8)
    twice_as_fast = updated_gammas(gammas[:1], gaps[:1], 2.0, 0.2, -2.0, 20.0)
    assert twice_as_fast.item() == pytest.approx(math.exp(0.2))


def test_bins_of_equal_mass() -> None:
    """Seven images in three bins: {.2 wrong, .3 wrong, .4 right}, {.5 wrong, .6 wrong}, {.8 right, .9 right}."""
    confidence = torch.tensor([0.9, 0.2, 0.6, 0.4, 0.8, 0.3, 0.5], dtype=torch.float64)
    correct = torch.tensor([1, 0, 0, 1, 1, 0, 0], dtype=torch.float64)
    gaps, boundaries = split_bins(confidence, correct, 3)
    assert gaps.tolist() == pytest.approx([0.3 - 1 / 3, 0.55, 0.85 - 1])
    assert boundaries.tolist() == pytest.approx([0.45, 0.7])


@pytest.mark.parametrize(("n", "bins"), [(45, 15), (50, 15), (7, 3), (2, 4)])
@pytest.mark.parametrize("decimals", [1, 6])
def test_interpolated_bins_image_by_image(n: int, bins: int, decimals: int) -> None:
    """Edges by numpy's interpolation, then each image in the bin (lower, upper] that has it; many ties or none."""
    generator = np.random.default_rng(n)
    confidence = generator.uniform(0.2, 1, n).round(decimals)
    correct = (generator.uniform(size=n) < 0.6).astype(float)
    edges = np.interp(np.linspace(0, n, bins + 1), np.arange(n), np.sort(confidence))
    members = [[i for i in range(n) if low < confidence[i] <= high] for low, high in itertools.pairwise(edges)]
    expected = [np.mean([confidence[i] - correct[i] for i in held]) if held else 0.0 for held in members]
    gaps, boundaries = interpolated_bins(torch.tensor(confidence), torch.tensor(correct), bins)
    assert gaps.tolist() == pytest.approx(expected, abs=1e-12)
    assert boundaries.tolist() == pytest.approx(edges[1:-1], abs=1e-12)


@pytest.mark.parametrize(("binning", "by_order"), [("interpolated", False), ("split", True)])
def test_only_the_old_bins_depend_on_the_order_of_the_images(binning: str, by_order: bool) -> None:
    confidence, correct = torch.tensor([0.5, 0.7, 0.7, 0.7, 0.7, 0.9]), torch.tensor([1.0, 0, 0, 1, 1, 1])
    found = [BINNINGS[binning](confidence, c, 3)[0].tolist() for c in (correct, correct[[0, 3, 4, 1, 2, 5]])]
    assert (found[0] != pytest.approx(found[1])) == by_order


def test_the_label_follows_the_public_code() -> None:
    """A label probability on an edge belongs to the bin above: lower ≤ p < upper."""
    assert AdaFocal.Config(**AdaFocal.labels["AdaFocal"]).binning == "interpolated"
    p, labels = two_classes([0.5]), torch.tensor([0])
    p_label = float(torch.softmax(p, 1)[0, 0])
    for binning, gamma in (("interpolated", 3.0), ("split", 1.0)):
        method = make(bins=2, binning=binning)
        method.boundaries.fill_(p_label)
        method.gammas.copy_(torch.tensor([1.0, 3.0]))
        expected = (1 - p_label) ** gamma * -math.log(p_label)
        assert step_loss(method, p, labels).item() == pytest.approx(expected)


def test_fewer_images_than_bins() -> None:
    gaps, boundaries = split_bins(torch.tensor([0.8, 0.6]), torch.tensor([1.0, 0.0]), 4)
    assert gaps.tolist() == pytest.approx([0.6, -0.2, 0, 0])
    assert boundaries.tolist() == pytest.approx([0.7, 0.8, 0.8])


def test_starts_as_focal_with_gamma_1_in_bins_of_equal_width() -> None:
    method = make(bins=4)
    assert method.boundaries.tolist() == [0.25, 0.5, 0.75]
    assert step_loss(method, Z.float(), Y).item() == pytest.approx(0.44148285, abs=1e-6)


def test_an_epoch_moves_the_gammas_that_the_next_step_looks_up_by_label_probability() -> None:
    """Validation bins {.6 wrong, .7 right} and {.8 wrong, .9 wrong}: gaps .15 and .85, boundary .75."""
    method = make(bins=2)
    logits = two_classes([0.9, 0.3, 0.6, 0.8])
    method.after_epoch(PROGRESS, Validation(Prediction(logits), torch.tensor([1, 1, 1, 1])))
    assert method.boundaries.tolist() == pytest.approx([0.75])
    expected = [math.exp(0.15), math.exp(0.85)]
    assert method.gammas.tolist() == pytest.approx(expected)
    assert method.health()["gamma_mean"].item() == pytest.approx(sum(expected) / 2)
    p = [0.01, 0.74, 0.76, 0.99]
    gammas = torch.tensor([expected[0], expected[0], expected[1], expected[1]])
    labels = torch.zeros(4, dtype=torch.long)
    looked_up = adafocal_loss(two_classes(p), labels, gammas).mean()
    torch.testing.assert_close(step_loss(method, two_classes(p), labels), looked_up)


def test_state_dict_holds_gammas_and_boundaries() -> None:
    first, second = make(bins=3), make(bins=3)
    first.after_epoch(PROGRESS, Validation(Prediction(Z.float()), Y))
    assert not torch.equal(first.gammas, second.gammas)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert torch.equal(first.gammas, second.gammas)
    assert torch.equal(first.boundaries, second.boundaries)


def test_no_validation_images_is_an_error() -> None:
    with pytest.raises(ValueError, match="validation"):
        make().after_epoch(PROGRESS, None)


@pytest.mark.parametrize(
    "settings", [{"bins": 1}, {"switch_threshold": 0.0}, {"lowest": -0.1}, {"highest": 0.1}], ids=str
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(settings))):
        build(AdaFocal.Config, settings, "here")
