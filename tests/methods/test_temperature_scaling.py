"""Temperature scaling: the temperature against a fine grid, and how far the ranking moves."""

import numpy as np
import pytest

from benchmark.measure.metrics import nll
from benchmark.measure.prediction import Evidence, Prediction
from benchmark.measure.scores import softmax_response
from methods.temperature_scaling import TemperatureScaling, fitted_temperature, pairs_reordered

DRAWS = np.random.default_rng(0)
TRUE_LOGITS = DRAWS.normal(size=(3000, 5)) * 2
LABELS = np.array([DRAWS.choice(5, p=np.exp(u) / np.exp(u).sum()) for u in TRUE_LOGITS])


def test_the_temperature_is_the_best_of_a_fine_grid() -> None:
    logits = 3 * TRUE_LOGITS
    temperature = fitted_temperature(logits, LABELS)
    grid = np.linspace(0.5, 6, 1101)
    assert temperature == pytest.approx(grid[np.argmin([nll(logits / t, LABELS) for t in grid])], abs=0.005)
    assert temperature == pytest.approx(3, rel=0.05), "overconfident by three"


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_extreme_scales_stay_within_the_bounds(scale: float) -> None:
    assert 0.01 <= fitted_temperature(TRUE_LOGITS[:200] * scale, LABELS[:200]) <= 100


def brute_force_reordered(before: np.ndarray, after: np.ndarray) -> float:
    pairs = [(i, j) for i in range(len(before)) for j in range(i)]
    return float(np.mean([(before[i] - before[j]) * (after[i] - after[j]) < 0 for i, j in pairs]))


def test_share_of_reordered_pairs() -> None:
    logits = TRUE_LOGITS[:60]
    expected = brute_force_reordered(softmax_response(logits), softmax_response(logits / 3))
    assert expected > 0.005
    assert pairs_reordered(logits, 3.0) == pytest.approx(expected, abs=1e-12)


def test_two_classes_are_never_reordered() -> None:
    assert pairs_reordered(TRUE_LOGITS[:, :2], 7.3) == 0


def test_fitted_on_validation_alone_and_reported() -> None:
    validation = [Evidence(Prediction(3 * TRUE_LOGITS[:2000]), LABELS[:2000])]
    made = TemperatureScaling.combine(None, [Prediction(3 * TRUE_LOGITS[2000:])], validation)
    temperature = fitted_temperature(3 * TRUE_LOGITS[:2000], LABELS[:2000])
    np.testing.assert_allclose(made.prediction.logits, 3 * TRUE_LOGITS[2000:] / temperature)
    assert made.facts["temperature"] == temperature
    assert made.facts["image pairs reordered (%)"] > 0
    assert nll(made.prediction.logits, LABELS[2000:]) < nll(3 * TRUE_LOGITS[2000:], LABELS[2000:])
