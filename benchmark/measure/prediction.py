"""The output of a trained method on images, from which scores and metrics are computed."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array")
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Prediction(Generic[Array]):
    """Class logits (N, K) and what else the scores need: tensors from `predict`, numpy arrays when stored or scored."""

    logits: Array
    features: Array | None = None
    aux: dict[str, Array] = field(default_factory=dict)


Stored = Prediction[Floats]


@dataclass(frozen=True)
class Evidence:
    """What is stored of a run on one split: prediction, labels, and the true posterior where it is known."""

    prediction: Stored
    labels: NDArray[np.int64]
    posterior: NDArray[np.float64] | None = None
    ids: NDArray[np.int32] | None = None
    """The position of each image in its split of the data set; None in files from before there were ids."""
