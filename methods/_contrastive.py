"""Shared parts of the contrastive family: the losses and their switches.

An anchor is a batch image; keys are unit features of earlier images in two queues, of the rightly and of the wrongly
classified. Whatever is compared, nothing larger than (batch × queue) is ever built.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from benchmark.interface import Epochs, Positive, Weight, Within, check, later
from methods._queues import Keys

MASKED = -1e9
"""Stands for log 0: finite, so that an empty set of negatives gives a zero gradient and not NaN."""

Masks = tuple[Tensor | None, Tensor | None]
"""(batch × queue) booleans: which entries of the right and of the wrong queue are negatives of each anchor."""
PairLoss = Callable[[Tensor, Sequence[Tensor], float], Tensor]
Rule = Callable[[Tensor, Keys, Keys], Masks]
Contrast = Callable[[Tensor, Tensor, Tensor, Keys, Keys, float], Tensor]


def paper_pair_loss(positive: Tensor, negatives: Sequence[Tensor], temperature: float) -> Tensor:
    """Return log(e^{s_p/τ} + Σ_n e^{s_n/τ}) − s_p/τ = softplus(logsumexp_n(s_n/τ) − s_p/τ) per (anchor, positive)."""
    log_sums = torch.stack([similar.logsumexp(1, keepdim=True) for similar in negatives])
    return softplus(log_sums.logsumexp(0) - positive)


def released_pair_loss(positive: Tensor, negatives: Sequence[Tensor], temperature: float) -> Tensor:
    """Return the loss of the public code: s_p is not divided by τ, and the maximum it subtracts is not restored.

    (τ/0.1) · [ paper − s_p − max(0, (max_n s_n − s_p)/τ) ]; may be negative.
    """
    hardest = torch.stack([similar.max(1, keepdim=True).values for similar in negatives]).max(0).values
    slip = temperature * positive + (hardest - positive).relu()
    return (paper_pair_loss(positive, negatives, temperature) - slip) * (temperature / 0.1)


def filed_under(labels: Tensor, negatives: Keys) -> Tensor:
    """Return N(y): which wrongly classified images were called y."""
    return labels[:, None] == negatives.predicted


def own_negatives(labels: Tensor, positives: Keys, negatives: Keys) -> Masks:
    return None, filed_under(labels, negatives)


def of_other_classes(labels: Tensor, keys: Keys, by: str) -> Tensor:
    classes: Tensor = getattr(keys, by)
    return (labels[:, None] != classes) & (classes >= 0)


def own_and_others(labels: Tensor, positives: Keys, negatives: Keys, queues: tuple[bool, bool], by: str) -> Masks:
    """Return N₂(y): N(y) and the queued images of other classes."""
    own = filed_under(labels, negatives)
    in_p = of_other_classes(labels, positives, by) if queues[0] else None
    return in_p, own | of_other_classes(labels, negatives, by) if queues[1] else own


def random_others(
    labels: Tensor,
    positives: Keys,
    negatives: Keys,
    queues: tuple[bool, bool],
    by: str,
    count: Callable[[Tensor], Tensor],
) -> Masks:
    """Return N₃(y): a random draw from the queued images of other classes without N(y)."""
    own = filed_under(labels, negatives)
    allowed_p = of_other_classes(labels, positives, by) & queues[0]
    allowed_n = of_other_classes(labels, negatives, by) & ~own & queues[1]
    number_p, number_n = torch.randperm(2 * own.shape[1], device=labels.device).chunk(2)
    counts = [allowed_up_to(number_p, allowed_p), allowed_up_to(number_n, allowed_n)]
    wanted = count(own)
    drawn_p, drawn_n = (place_in_draw(number, counts) <= wanted for number in (number_p, number_n))
    return allowed_p & drawn_p, allowed_n & drawn_n


def allowed_up_to(number: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return a queue's numbers in order, and for each anchor how many allowed entries drew up to each of them."""
    ordered, order = number.sort()
    return ordered, allowed.index_select(1, order).cumsum(1, dtype=torch.int32)


def place_in_draw(number: Tensor, counts: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return how many allowed entries of all queues have drawn a number up to this one, for each anchor."""
    place = torch.zeros((), dtype=torch.int32, device=number.device)
    for ordered, up_to in counts:
        entries = torch.searchsorted(ordered, number, right=True)
        place = place + torch.where(entries > 0, up_to.index_select(1, (entries - 1).clamp(min=0)), 0)
    return place


def as_many_as_own(own: Tensor) -> Tensor:
    return own.sum(1, keepdim=True)


def as_many_as_the_queue(own: Tensor) -> Tensor:
    return torch.full_like(own[:, :1], own.shape[1], dtype=torch.long)


def csc_loss(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    positives: Keys,
    negatives: Keys,
    temperature: float,
    pair_loss: PairLoss = paper_pair_loss,
    rule: Rule = own_negatives,
) -> Tensor:
    """Return weight_i · (1/|P(y_i)|) · Σ_{p∈P(y_i)} pair_loss(s_ip/τ, s_in/τ) per anchor; 0 where P(y_i) is empty.

    P(y): rightly classified images of class y. The rule says which images are negatives.
    """
    similar = [features @ keys.features.T / temperature for keys in (positives, negatives)]
    masks = rule(labels, positives, negatives)
    foes = [torch.where(mask, s, MASKED) for s, mask in zip(similar, masks, strict=True) if mask is not None]
    in_p = labels[:, None] == positives.predicted
    pairs = pair_loss(similar[0], foes, temperature)
    return weight * torch.where(in_p, pairs, 0.0).sum(1) / in_p.sum(1).clamp(min=1)


def supcon_loss(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    positives: Keys,
    negatives: Keys,
    temperature: float,
    queues: tuple[bool, bool] = (True, True),
) -> Tensor:
    """Return weight_i · [ log Σ_a e^{s_a/τ} − (1/|P|) Σ_{p∈P} s_p/τ ]; P: images of the anchor's class, a: all images.

    An anchor's own earlier key may be among them; it is not told apart from other images of its class.
    """
    log_sums, pulled, count = [], torch.zeros_like(weight), torch.zeros_like(labels)
    for keys in compress((positives, negatives), queues):
        similar = features @ keys.features.T / temperature
        same = labels[:, None] == keys.true
        log_sums.append(torch.where(keys.true >= 0, similar, MASKED).logsumexp(1))
        pulled, count = pulled + torch.where(same, similar, 0.0).sum(1), count + same.sum(1)
    loss = torch.stack(log_sums).logsumexp(0) - pulled / count.clamp(min=1)
    return weight * torch.where(count > 0, loss, 0.0)


def softmax_response(outputs: Tensor, num_classes: int) -> Tensor:
    """Return SR = max_j p_j over the classes, detached: it weighs an anchor and is not trained."""
    return torch.softmax(outputs[:, :num_classes].detach(), 1).amax(1)


def largest_output(outputs: Tensor, num_classes: int) -> Tensor:
    """Return max_j p_j over all outputs, the abstention too, as in the public code of the combination."""
    return torch.softmax(outputs.detach(), 1).amax(1)


def unweighted(outputs: Tensor, num_classes: int) -> Tensor:
    return torch.ones_like(outputs[:, 0])


def all_anchors(predicted: Tensor, labels: Tensor) -> Tensor:
    return torch.ones_like(labels, dtype=torch.bool)


def correct_anchors(predicted: Tensor, labels: Tensor) -> Tensor:
    return predicted == labels


PAIR_LOSSES: dict[str, PairLoss] = {"paper": paper_pair_loss, "released": released_pair_loss}
WEIGHTS = {"sr": softmax_response, "sr_outputs": largest_output, "none": unweighted}
ANCHORS = {"all": all_anchors, "correct": correct_anchors}
COUNTS = {"matched": as_many_as_own, "queue": as_many_as_the_queue}
QUEUES = {"both": (True, True), "positives": (True, False), "negatives": (False, True)}


@dataclass(frozen=True)
class ContrastConfig:
    """Paper's values for CIFAR-100; what the paper leaves open is a field whose default is our choice.

    Of what the paper says in two ways, the default is its prose (a queue that rolls) and not Algorithm 1 (one that
    freezes when full, and so holds features of the first epoch to the end); the label "frozen" is Algorithm 1.
    """

    warmup_epochs: Epochs = 150
    """E_s: epochs of cross-entropy before the momentum encoder is copied and the queues begin to fill. Algorithm 1
    counts epochs from 1, but the paper's grid has E_s = 0: so E_s is a number of epochs."""
    momentum: float = 0.99
    """q of the momentum encoder."""
    queue_size: Annotated[int, Within(1, 10**6, "a queue must fit into the memory of a device")] = 3000
    """s, the length of each queue."""
    weight: Weight = 1.0
    """w of the contrastive loss."""
    temperature: Positive = 0.1
    loss_form: Literal["paper", "released"] = "paper"
    queue_policy: Literal["rolling", "freeze", "random"] = "rolling"
    """rolling: every batch is enqueued (the paper's prose); freeze: full queues stay as they are (Algorithm 1);
    random: noise that never changes (the public code of the combination with SAT+EM)."""
    momentum_cadence: Literal["step", "epoch"] = "step"
    key_mode: Literal["train", "eval"] = "train"
    anchors: Literal["all", "correct"] = "all"
    weighting: Literal["sr", "sr_outputs", "none"] = "sr"
    fill_epochs: Epochs = 0
    """The loss waits so many epochs after the warm-up while the queues fill; a second public script has 10."""
    negatives: Literal["own", "sc2", "sc3", "supcon"] = "own"
    """own: N(y). sc2: N(y) and other classes. sc3: a draw from other classes. supcon: SupCon's loss and sets."""
    other_queues: Literal["both", "positives", "negatives"] = "both"
    """Where sc2, sc3 and supcon look; the paper says only "the queue"."""
    other_class: Literal["true", "predicted"] = "true"
    """What makes a queued image one of another class for sc2 and sc3; the paper does not say."""
    draw: Literal["matched", "queue"] = "matched"
    """How many sc3 draws: as many as N(y) has, so that only their kind differs, or as many as a queue holds."""
    momentum_order: Literal["after", "before"] = later("after")
    """The weights that the key encoder moves towards: those after the optimiser step, or those before it (Algorithm 1).
    MoCo moves it at the start of the next step, ahead of its keys: that is "after"."""
    full_at: Literal["size", "more"] = later("size")
    """The loss starts when each queue has taken s entries (public code), or more than s (Algorithm 1)."""

    def __post_init__(self) -> None:
        check(0 <= self.momentum <= 1, f"momentum must lie in [0, 1], got {self.momentum}")
        fits = self.negatives != "supcon" or self.loss_form == "paper"
        check(fits, "loss_form = 'released' has no meaning with negatives = 'supcon'")

    def contrast(self) -> Contrast:
        """Return the loss that these settings select."""
        queues, by = QUEUES[self.other_queues], self.other_class
        rules: dict[str, Rule] = {
            "own": own_negatives,
            "sc2": partial(own_and_others, queues=queues, by=by),
            "sc3": partial(random_others, queues=queues, by=by, count=COUNTS[self.draw]),
        }
        if self.negatives == "supcon":
            return partial(supcon_loss, queues=queues)
        return partial(csc_loss, pair_loss=PAIR_LOSSES[self.loss_form], rule=rules[self.negatives])
