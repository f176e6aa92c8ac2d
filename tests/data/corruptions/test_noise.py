"""Noise against the distributions it is drawn from. All draws are fixed, so no test can fail by chance."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare, kstest, norm, poisson

from benchmark.data.corruptions.constants import CONSTANTS
from benchmark.data.corruptions.corrupt import corrupt

SEVERITIES = range(1, 6)
COUNT = 20
VALUES = COUNT * 3 * 32 * 32


def of_grey(level: int, kind: str, severity: int) -> np.ndarray:
    """The values that one grey level becomes, in 61,440 places."""
    images = torch.full((COUNT, 3, 32, 32), level, dtype=torch.uint8)
    return corrupt(images, kind, severity, torch.arange(COUNT)).numpy().reshape(-1).astype(np.float64)


def constant(kind: str, severity: int) -> float:
    return CONSTANTS[kind][severity - 1][0]


def assert_rounded_normal(values: np.ndarray, mean: float, std: float) -> None:
    """Whole numbers whose distribution function is the normal one at their upper ends, k + ½."""
    assert values.mean() == pytest.approx(mean, abs=4 * std / VALUES**0.5)
    assert values.std() == pytest.approx((std**2 + 1 / 12) ** 0.5, rel=4 / (2 * VALUES) ** 0.5)
    levels = np.arange(256)
    share = np.searchsorted(np.sort(values), levels, side="right") / VALUES
    assert np.abs(share - norm.cdf(levels + 0.5, mean, std)).max() < 1.63 / VALUES**0.5


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_noise_is_normal(severity: int) -> None:
    assert_rounded_normal(of_grey(128, "gaussian noise", severity), 128, 255 * constant("gaussian noise", severity))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("level", [40, 110])
def test_speckle_noise_is_normal_in_proportion_to_the_value(severity: int, level: int) -> None:
    values = of_grey(level, "speckle noise", severity)
    assert_rounded_normal(values, level, level * constant("speckle noise", severity))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("level", [1, 25, 128, 200])
def test_shot_noise_is_poisson(severity: int, level: int) -> None:
    """Chi-squared over the grey levels that the counts of photons become."""
    photons = constant("shot noise", severity)
    counts = np.arange(2000)
    becomes = np.rint(np.minimum(255 * counts / photons, 255)).astype(int)
    expected = np.bincount(becomes, poisson.pmf(counts, level / 255 * photons), minlength=256) * VALUES
    found = np.bincount(of_grey(level, "shot noise", severity).astype(int), minlength=256).astype(float)
    often = expected >= 5
    rest = [[numbers[~often].sum()] for numbers in (found, expected)]
    theirs = np.append(expected[often], rest[1])
    assert chisquare(np.append(found[often], rest[0]), theirs * (VALUES / theirs.sum())).pvalue > 0.001


def test_shot_noise_leaves_black_black() -> None:
    assert not of_grey(0, "shot noise", 5).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_impulse_noise_has_as_much_salt_as_pepper(severity: int) -> None:
    values, share = of_grey(100, "impulse noise", severity), constant("impulse noise", severity)
    for level in (0, 255):
        assert binomtest(int((values == level).sum()), VALUES, share / 2).pvalue > 0.01
    assert set(np.unique(values)) == {0, 100, 255}


def test_noise_of_a_place_says_nothing_of_its_neighbours() -> None:
    """Correlations with the next column, row, channel and image, and between kinds and severities."""
    noise = of_grey(128, "gaussian noise", 3).reshape(COUNT, 3, 32, 32) - 128
    others = [np.roll(noise, 1, axis) for axis in range(4)]
    others.append(of_grey(128, "gaussian noise", 4).reshape(noise.shape) - 128)
    others.append(of_grey(128, "speckle noise", 3).reshape(noise.shape) - 128)
    others.append(noise**2 - (noise**2).mean())
    for other in others:
        assert abs(np.corrcoef(noise.reshape(-1), other.reshape(-1))[0, 1]) < 4 / VALUES**0.5


def test_normal_quantiles_are_uniform() -> None:
    """Kolmogorov–Smirnov on the noise of one pixel of many images: keys, not places, differ here."""
    images = torch.full((4000, 1, 1, 1), 128, dtype=torch.uint8)
    noise = corrupt(images, "gaussian noise", 5, torch.arange(4000)).numpy().reshape(-1) - 128.0
    dither = np.random.default_rng(0).uniform(-0.5, 0.5, 4000)
    assert kstest(noise + dither, norm(0, 25.5).cdf).pvalue > 0.01
