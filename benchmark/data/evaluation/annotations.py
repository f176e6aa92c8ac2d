"""Find what is known of a task's test images beyond their labels: what people call them, or their groups."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.task import TaskConfig
from benchmark.data.cache import Folders
from benchmark.data.dataset import load
from benchmark.data.evaluation.groups import read_groups
from benchmark.data.evaluation.people import posterior_of, read_counts


@dataclass(frozen=True)
class Annotations:
    """What is known of some test images, in their order."""

    posterior: NDArray[np.float64] | None
    """The share of people who say each class (n, K)."""
    groups: Mapping[str, NDArray[Any]]
    """By column: the value of each image, text or a whole number."""
    sha256: str


def annotations(
    config: EvaluationConfig, task: TaskConfig, folders: Folders, ids: NDArray[np.int32], num_classes: int
) -> Annotations:
    """Return what a set of kind humans or groups says of the test images with these numbers."""
    count = len(load(task.data, folders)[0].test.pictures)
    if config.kind == "humans":
        left_out = task.data.leave_out
        counts = read_counts(config.file, count, num_classes + len(left_out))
        posterior = posterior_of(counts, ids, left_out, config.file)
        return Annotations(posterior, {}, hash_arrays({"counts": counts}))
    groups = read_groups(config, task.data, folders.data, count)
    return Annotations(None, {name: column[ids] for name, column in groups.items()}, hash_arrays(groups))


def hash_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a hash of the values, however many bytes their file spends on each."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.shape} {array.tolist()}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()
