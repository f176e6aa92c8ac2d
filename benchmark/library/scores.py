"""Confidence scores of your own logits or features: lists, arrays, pandas columns or torch tensors.

`logits`: samples × classes; log-probabilities do as well. **Larger always means more confident.** Only the order of
the values matters: some are a transform of what their name says, with fewer ties. A ValueError says what is wrong.
"""

from numpy.typing import ArrayLike

from benchmark.library.arrays import Array, label_vector, logits_table, matrix, same_length, vector, whole
from benchmark.measure import scores

__all__ = [
    "abstention",
    "doctor",
    "energy",
    "mahalanobis",
    "margin",
    "max_logit",
    "max_logit_pnorm",
    "nearest_neighbour",
    "negative_entropy",
    "softmax_response",
]


def __dir__() -> list[str]:
    """Return what a notebook completes: the public functions alone."""
    return __all__


def softmax_response(logits: ArrayLike) -> Array:
    """Return the largest class probability, as its log-odds.

    >>> softmax_response([[2.0, 0.0], [0.0, 0.5]])
    array([2. , 0.5])
    """
    return scores.softmax_response(logits_table(logits))


def margin(logits: ArrayLike) -> Array:
    """Return the difference m of the two largest class probabilities, as −log(1 − m).

    >>> margin([[2.0, 0.0], [0.0, 0.5]]).round(3)
    array([1.434, 0.281])
    """
    return scores.margin(logits_table(logits))


def negative_entropy(logits: ArrayLike) -> Array:
    """Return minus the entropy of the class probabilities.

    >>> negative_entropy([[2.0, 0.0], [0.0, 0.5]]).round(3)
    array([-0.365, -0.663])
    """
    return scores.negative_entropy(logits_table(logits))


def max_logit(logits: ArrayLike) -> Array:
    """Return the largest logit.

    >>> max_logit([[2.0, 0.0], [0.0, 0.5]])
    array([2. , 0.5])
    """
    return scores.max_logit(logits_table(logits))


def energy(logits: ArrayLike) -> Array:
    """Return the logarithm of the sum of exp(logit).

    >>> energy([[2.0, 0.0], [0.0, 0.5]]).round(3)
    array([2.127, 0.974])
    """
    return scores.energy(logits_table(logits))


def doctor(logits: ArrayLike) -> Array:
    """Return −(1 − g)/g, where g is the sum of the squared class probabilities.

    >>> doctor([[2.0, 0.0], [0.0, 0.5]]).round(3)
    array([-0.266, -0.887])
    """
    return scores.doctor(logits_table(logits))


def max_logit_pnorm(logits: ArrayLike, p: int) -> Array:
    """Return the largest centred logit over the p-norm of the centred logits; p = 0 leaves the norm out.

    >>> max_logit_pnorm([[2.0, 0.0, 1.0], [0.0, 0.5, 0.1]], 2).round(3)
    array([0.707, 0.802])
    """
    return scores.max_logit_pnorm(logits_table(logits), whole(p, "p", 0))


def abstention(logits: ArrayLike, abstain: ArrayLike) -> Array:
    """Return −log p(abstain), the softmax taken over the classes and one more output for abstention.

    >>> abstention([[2.0, 0.0], [0.0, 0.5]], [-1.0, 1.0]).round(3)
    array([3.17, 0.68])
    """
    table, outputs = logits_table(logits), vector(abstain, "abstain")
    same_length(logits=table, abstain=outputs)
    return scores.abstention(table, outputs)


def nearest_neighbour(features: ArrayLike, train: ArrayLike, k: int = 50) -> Array:
    """Return minus the squared distance to the k-th nearest training sample, or the last if there are fewer than k.

    Features are scaled to length 1 first.

    >>> nearest_neighbour([[1.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [3.0, 0.0]], k=1).round(3)
    array([ 0.   , -0.586])
    """
    return scores.nearest_neighbour(*feature_tables(features, train), whole(k, "k", 1))


def mahalanobis(features: ArrayLike, train: ArrayLike, labels: ArrayLike) -> Array:
    """Return minus the squared Mahalanobis distance to the nearest class mean of the training features.

    `labels` are those of the training samples. The classes share one covariance.

    >>> mahalanobis([[0.0], [6.0]], [[-1.0], [1.0], [9.0], [11.0]], [0, 0, 1, 1]).round(3)
    array([ -0., -16.])
    """
    table, known = feature_tables(features, train)
    classes = label_vector(labels)
    same_length(train=known, labels=classes)
    return scores.mahalanobis(table, known, classes)


def feature_tables(features: ArrayLike, train: ArrayLike) -> tuple[Array, Array]:
    """Return the features of samples and of training samples, which must be equally many per sample."""
    table, known = matrix(features, "features", "features"), matrix(train, "train", "features")
    if table.shape[1] != known.shape[1]:
        raise ValueError(
            f"features and train: expected as many features in both, got {table.shape[1]:,} and {known.shape[1]:,}"
        )
    return table, known
