"""SPTD, training dynamics: an image on which earlier states of the network disagree with its last is doubtful."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark.interface import Combination, Derived, Evidence, Floats, Member, Prediction, Stored, Within, check

CLOSEST = 1e-6
"""The score breaks ties of s by amounts below this, so values of s must lie further apart."""


def evenly_spaced(num_epochs: int, checkpoints: int) -> list[int]:
    """Return the epochs after which the network is asked, the last one among them; at most one per epoch."""
    count = min(checkpoints, num_epochs)
    return [num_epochs * (index + 1) // count for index in range(count)]


def importance(checkpoints: int, power: float) -> NDArray[np.float64]:
    """Return v_t = (t/T)^k: that an image changed its class late counts for more."""
    return np.asarray((np.arange(1, checkpoints + 1) / checkpoints) ** power)


def disagreements(logits: Sequence[Floats]) -> NDArray[np.float64]:
    """Return a_t = 1 where the prediction of state t is not that of the last; (T, N)."""
    predicted = np.stack([each.argmax(axis=1) for each in logits])
    return np.asarray(predicted != predicted[-1], np.float64)


def weighted_sum(weighted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return s = Σ_t v_t a_t."""
    return np.asarray(weighted.sum(axis=0))


def weighted_max(weighted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return s = max_t v_t a_t, which tells the last state that disagreed."""
    return np.asarray(weighted.max(axis=0))


FORMS = {"sum": weighted_sum, "max": weighted_max}


class SPTD(Derived):
    """The last state predicts; the others cost storage and a pass over the images each, and no training beyond one.

    Many images have s = 0 exactly; the score ranks those by softmax response.
    """

    title = "plain cross-entropy, ranked by how late in training the predicted class still changed"
    reference = "Rabanser et al., TMLR 2025"
    labels = {"SPTD": {}}
    own_scores = ("disagreement", "SR")

    @dataclass(frozen=True)
    class Config:
        checkpoints: Annotated[int, Within(1, 1000, "a prediction is kept of each")] = 12
        """T, the number of states asked, evenly spaced; fewer where the training has fewer epochs."""
        power: Annotated[float, Within(1, 100, "only the last states would count")] = 2.0
        """k, of v_t = (t/T)^k."""
        form: Literal["sum", "max"] = "sum"

        def __post_init__(self) -> None:
            apart = self.checkpoints**self.power <= 1 / CLOSEST
            check(apart, f"checkpoints ** power must not exceed {1 / CLOSEST:,.0f}: the first weights would be nothing")

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        *earlier, _ = evenly_spaced(num_epochs, config.checkpoints)
        recipe = {"evaluate_at": earlier}
        return [Member("cross_entropy", seed, recipe, epoch) for epoch in (*earlier, None)]

    @staticmethod
    def combine(config: Any, predictions: Sequence[Stored], validation: Sequence[Evidence]) -> Combination:
        changed = disagreements([prediction.logits for prediction in predictions])
        doubt = FORMS[config.form](importance(len(changed), config.power)[:, None] * changed)
        facts = {"images that never changed class (%)": 100 * float((doubt == 0).mean())}
        return Combination(Prediction(predictions[-1].logits, None, {"disagreement": doubt}), facts)


METHOD = SPTD
