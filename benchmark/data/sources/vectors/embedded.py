"""Load the small tables that scikit-learn brings: few training vectors, so that there are errors to abstain from."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmark.config.task import DataConfig
from benchmark.data.images import Facts, Images, Loaded
from benchmark.data.preprocessing import channel_sums, mean_and_std
from benchmark.data.sources.vectors.columns import as_pictures
from benchmark.data.sources.vectors.encoding import constant_in

SETTINGS = ()
CACHED = False


class Table(NamedTuple):
    """What is known of a table, and the function of scikit-learn that returns it."""

    loader: str
    num_classes: int
    num_train: int
    num_test: int
    num_columns: int
    """Without those that are constant in training."""


TABLES = {
    "breast-cancer": Table("load_breast_cancer", 2, 200, 369, 30),
    "wine": Table("load_wine", 3, 60, 118, 13),
    "digits-vectors": Table("load_digits", 10, 400, 1397, 59),
}


def describe(config: DataConfig) -> Facts:
    table = TABLES[config.source]
    return Facts(table.num_classes, table.num_train, table.num_test, (table.num_columns, 1, 1), floats=True)


def load(config: DataConfig, data_dir: Path) -> Loaded:
    """Return the vectors in a fixed random order; those of digits are split as the images of the task `digits`."""
    from sklearn import datasets

    table = TABLES[config.source]
    values, labels = getattr(datasets, table.loader)(return_X_y=True)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(labels))
    train, test = order[: table.num_train], order[table.num_train :]
    pictures = as_pictures(values[:, ~constant_in(values, train)])
    measured = mean_and_std(channel_sums(pictures[train]))
    mean, std = tuple(measured["mean"]), tuple(measured["std"])
    return Loaded(
        Images.of(pictures[train], labels[train]), Images.of(pictures[test], labels[test]), mean=mean, std=std
    )
