"""Make images whose posterior is known: a smooth prototype per class plus white noise of a strength drawn per image.

x = μ_y + σ·ε with y and σ uniform and ε standard normal, so P(y|x) ∝ Σ_σ σ^{-d} exp(−‖x−μ_y‖²/2σ²) is exact. Pixels
stay floats: the posterior is that of the very image the network sees.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.special import logsumexp

from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded

SETTINGS = ()
CACHED = False
SEED = 0
NUM_CLASSES = 10
SIDE = 16
NUM_TRAIN, NUM_TEST = 4_000, 10_000
NOISE_LEVELS = np.array([1.0, 3.0, 6.0, 12.0])
SMOOTHING = 2.0


def describe(config: DataConfig) -> Facts:
    return Facts(NUM_CLASSES, NUM_TRAIN, NUM_TEST, (1, SIDE, SIDE), floats=True)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    random = np.random.Generator(np.random.PCG64(SEED))
    prototypes = draw_prototypes(random)
    train = draw_images(random, prototypes, NUM_TRAIN)
    test = draw_images(random, prototypes, NUM_TEST)
    return Loaded(train, test, posterior(np.asarray(test.pictures), prototypes))


def draw_prototypes(random: np.random.Generator) -> NDArray[np.float64]:
    """Draw smooth random images with variance 1 (classes, side, side)."""
    smooth = gaussian_filter(random.standard_normal((NUM_CLASSES, SIDE, SIDE)), (0, SMOOTHING, SMOOTHING), mode="wrap")
    smooth -= smooth.mean(axis=(1, 2), keepdims=True)
    return np.asarray(smooth / smooth.std(axis=(1, 2), keepdims=True))


def draw_images(random: np.random.Generator, prototypes: NDArray[np.float64], count: int) -> Images:
    labels = random.integers(NUM_CLASSES, size=count)
    noise = random.choice(NOISE_LEVELS, size=count)
    images = prototypes[labels] + noise[:, None, None] * random.standard_normal((count, SIDE, SIDE))
    return Images.of(images.astype(np.float32)[:, None], labels)


def posterior(images: NDArray[np.float32], prototypes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(y|x) (n, classes), summed over the noise levels."""
    x, mu = images.reshape(len(images), -1).astype(np.float64), prototypes.reshape(len(prototypes), -1)
    squared = (x**2).sum(1)[:, None] - 2 * x @ mu.T + (mu**2).sum(1)
    variance = NOISE_LEVELS**2
    log_density = -0.5 * (squared[:, :, None] / variance + x.shape[1] * np.log(variance))
    joint = logsumexp(log_density, axis=2)
    return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))
