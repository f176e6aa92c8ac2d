"""Load the real 8×8 digits of scikit-learn: few training images, so that there are errors to abstain from."""

from pathlib import Path

import numpy as np

from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded

SETTINGS = ()
CACHED = False
NUM_TRAIN = 400
NUM_IMAGES = 1797


def describe(config: DataConfig) -> Facts:
    return Facts(num_classes=10, num_train=NUM_TRAIN, num_test=NUM_IMAGES - NUM_TRAIN, shape=(1, 8, 8))


def load(config: DataConfig, data_dir: Path) -> Loaded:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels * 15).astype(np.uint8).reshape(-1, 1, 8, 8)  # grey levels 0..16, exactly
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(images))
    train, test = order[:NUM_TRAIN], order[NUM_TRAIN:]
    return Loaded(Images.of(images[train], labels[train]), Images.of(images[test], labels[test]))
