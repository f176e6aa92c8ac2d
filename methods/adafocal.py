"""AdaFocal: focal loss with one gamma per confidence bin, moved every epoch by the bin's calibration error."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from benchmark.interface import Batch, Method, Progress, Step, Task, Validation, Weight, Within, accuracy, check, later
from methods._probabilities import confidence, correctness, label_log_probability, other_log_probability


def adafocal_loss(logits: Tensor, labels: Tensor, gamma: Tensor) -> Tensor:
    """Return −(1 − s·p_y)^|γ| ln p_y per sample, s the sign of γ: focal above 0, inverse focal below."""
    log_p = label_log_probability(logits, labels)
    log_base = torch.where(gamma > 0, other_log_probability(logits, labels), torch.log1p(log_p.exp()))
    return -torch.exp(gamma.abs() * log_base) * log_p


def interpolated_bins(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return mean confidence − accuracy of the bins (lower, upper] (0 if empty), and the edges between them.

    As in the public code, edge b is the confidence at place b·n/bins in order, interpolated. Ties stay together, so
    bins may be empty or of unequal mass, and the least confident images are in none.
    """
    ordered, last = confidence.sort().values, len(confidence) - 1
    places = [min(b * len(confidence) / bins, last) for b in range(bins + 1)]
    below = ordered[[int(place) for place in places]]
    above = ordered[[min(int(place) + 1, last) for place in places]]
    edges = below + (above - below) * below.new_tensor([place % 1 for place in places])
    inside = (confidence > edges[:-1, None]) & (confidence <= edges[1:, None])
    gaps = (inside * (confidence - correct)).sum(1) / inside.sum(1).clamp(min=1)
    return gaps, edges[1:-1]


def split_bins(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return the same of bins of equal mass, which part ties by their order, and the midpoints between neighbours.

    With fewer images than bins the last bins are empty and begin where the confidences end.
    """
    ordered, order = confidence.sort(stable=True)
    parts = (ordered - correct.index_select(0, order)).tensor_split(bins)
    gaps = torch.stack([part.sum() / max(len(part), 1) for part in parts])
    ends = list(accumulate(len(part) for part in parts))[:-1]
    middles = [(ordered[end - 1] + ordered[min(end, len(ordered) - 1)]) / 2 for end in ends]
    return gaps, torch.stack(middles)


def updated_gammas(
    gammas: Tensor, gaps: Tensor, rate: float, threshold: float, lowest: float, highest: float
) -> Tensor:
    """Return γ·e^{s·λ·gap}, s the sign of γ; below the threshold, focal and inverse focal change places."""
    side = 2 * (gammas > 0).to(gammas.dtype) - 1
    moved = gammas * torch.exp(side * rate * gaps)
    return torch.where(moved.abs() < threshold, -side * threshold, moved).clamp(lowest, highest)


BINNINGS = {"split": split_bins, "interpolated": interpolated_bins}


class AdaFocal(Method):
    """The bins are of the top-1 confidence of validation images, yet a training image is looked up by its p_y: so
    published. Mean reduction and no gradient clipping; the public recipe sums the loss and clips at norm 2."""

    title = "focal loss whose gamma follows the calibration error of the validation images"
    reference = "Ghosh et al., NeurIPS 2022"
    labels = {"AdaFocal": {"binning": "interpolated"}}
    needs_validation = True
    gammas: Tensor
    boundaries: Tensor

    @dataclass(frozen=True)
    class Config:
        bins: Annotated[int, Within(2, 1000, "each bin needs validation images")] = 15
        rate: Weight = 1.0
        """lambda, of the exponential update."""
        switch_threshold: float = 0.2
        """S_th: a gamma smaller than this changes its sign."""
        lowest: float = -2.0
        highest: float = 20.0
        binning: Literal["split", "interpolated"] = later("split")
        """Of the validation images. interpolated: the public code; split: bins of exactly equal mass."""

        def __post_init__(self) -> None:
            fits = 0 < self.switch_threshold <= min(-self.lowest, self.highest)
            check(fits, "switch_threshold must be positive, and lie with its negative between lowest and highest")

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__(network, task, config)
        self.register_buffer("gammas", torch.ones(config.bins))
        self.register_buffer("boundaries", torch.linspace(0, 1, config.bins + 1)[1:-1].clone())

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        p_label = label_log_probability(logits.detach(), batch.labels).exp()
        on_edge_goes_up = self.config.binning == "interpolated"
        gamma = self.gammas.index_select(0, torch.bucketize(p_label, self.boundaries, right=on_edge_goes_up))
        loss = adafocal_loss(logits, batch.labels, gamma).mean()
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels), "p_label": p_label.mean()})

    def after_epoch(self, progress: Progress, validation: Validation | None) -> None:
        if validation is None:
            raise ValueError("AdaFocal needs validation images")
        logits, config = validation.prediction.logits, self.config
        divide = BINNINGS[config.binning]
        gaps, boundaries = divide(confidence(logits), correctness(logits, validation.labels), config.bins)
        limits = config.switch_threshold, config.lowest, config.highest
        self.gammas.copy_(updated_gammas(self.gammas, gaps, config.rate, *limits))
        self.boundaries.copy_(boundaries)

    def health(self) -> Mapping[str, Tensor]:
        return {"gamma_mean": self.gammas.mean()}


METHOD = AdaFocal
