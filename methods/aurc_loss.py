"""AURC loss: cross-entropies weighted by what an error at their place in the ranking adds to the AURC."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, accuracy
from methods._probabilities import other_log_probability


def ascending_rank(logits: Tensor) -> Tensor:
    """Return k − 1, the place of each image from the least confident on.

    The confidence is r = max_j p_j, by ln(1 − r): r rounds to 1 and ties, this does not.
    """
    doubt = other_log_probability(logits.detach(), logits.detach().argmax(1))
    return doubt.argsort(descending=True, stable=True).argsort()


def weights(rank: Tensor, dtype: torch.dtype) -> Tensor:
    """Return α = H_N − H_{N−k} = 1/N + 1/(N−1) + … + 1/(N−k+1), with N the size of this batch; their mean is 1."""
    terms = 1 / torch.arange(len(rank), 0, -1, dtype=dtype, device=rank.device)
    return terms.cumsum(0).index_select(0, rank)


def aurc_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return α_i·CE_i per sample. With the 0/1 loss in place of CE, the mean is the AURC of the batch."""
    return weights(ascending_rank(logits), logits.dtype) * cross_entropy(logits, labels, reduction="none")


class AURCLoss(Method):
    """The weight is a constant of the gradient: nothing pulls at the ranking itself, confident errors just count more.

    Public code takes the weights from a table of the nominal batch size, which is wrong for a last, smaller batch.
    """

    title = "cross-entropy weighted by the rank of the confidence, as the AURC weights errors"
    reference = "Zhou et al., ICML 2025"
    labels = {"AURC loss": {}}
    couples_samples = True

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        loss = aurc_loss(logits, batch.labels).mean()
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels)})


METHOD = AURCLoss
