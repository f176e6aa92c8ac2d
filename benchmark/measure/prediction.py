"""The output of a trained method on images, from which scores and metrics are computed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

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
    probabilities: Array | None = None
    """Class probabilities as an imported run has them; its logits are their logarithms, which would break ties."""


Stored = Prediction[Floats]


CONFIDENCE = "confidence."
"""Begins the names of further outputs that are confidences as an imported run has them."""
LARGEST_P = "largest probability"
"""The further output that has max_j p_j of each image, where logits are not kept: Chow's rule needs it."""


@dataclass(frozen=True)
class Classifier:
    """The last layer of a network: its class logits are Wf + b, f the features."""

    weight: Floats
    """W, a row for each class."""
    bias: Floats


@dataclass(frozen=True)
class Evidence:
    """What is stored of a run on one split: prediction, labels, and the true posterior where it is known."""

    prediction: Stored
    """Of an imported run without logits: a table of logits with no columns."""
    labels: NDArray[np.int64]
    """Empty where an imported run has a loss instead of classes."""
    posterior: NDArray[np.float64] | None = None
    ids: NDArray[Any] | None = None
    """The position of each image in its split of the data set, or the names that an imported run has for its samples;
    None in files from before there were ids."""
    given: str = ""
    """What an imported run has: logits, log_probabilities, probabilities, predicted or loss; empty if trained."""
    predicted: NDArray[np.int64] | None = None
    """The predicted classes of an imported run without logits."""
    loss: NDArray[np.float64] | None = None
    """The loss of each sample, from 0 to 1, of an imported run whose task has no classes."""
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns by which the samples of an imported run can be grouped."""

    def of(self, rows: NDArray[np.int64]) -> "Evidence":
        """Return some of the samples."""

        def chosen(values: Any) -> Any:
            return None if values is None else values[rows]

        old = self.prediction
        aux = {name: each[rows] for name, each in old.aux.items()}
        prediction = Prediction(old.logits[rows], chosen(old.features), aux, chosen(old.probabilities))
        optional = {name: chosen(getattr(self, name)) for name in ("posterior", "ids", "predicted", "loss")}
        groups = {name: each[rows] for name, each in self.groups.items()}
        labels = self.labels[rows] if len(self.labels) else self.labels
        return Evidence(prediction, labels, given=self.given, groups=groups, **optional)

    @property
    def num_samples(self) -> int:
        return len(self.prediction.logits)

    @property
    def has_logits(self) -> bool:
        return self.prediction.logits.ndim == 2 and self.prediction.logits.shape[1] > 0
