"""The whole way from images to a decision as one module: normalisation, networks, score, threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from benchmark.data.augment import normalise
from benchmark.selector.formulas import fraction, log_mean_probability
from benchmark.selector.member import Architecture, Member, empty_member
from benchmark.selector.scores import Reading, Score

SCORE = "score."
"""Begins the names of a score's tensors among those of the model."""


@dataclass(frozen=True)
class Description:
    """All that is needed to build a model, but for its tensors."""

    members: tuple[Architecture, ...]
    score: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    floats: bool
    """Whether images are floats; else they are 8-bit pixels."""
    combination: Literal["alone", "mean probability", "over temperature"] = "alone"
    temperature: float = 1.0
    settings: dict[str, Any] = field(default_factory=dict)
    """What is fitted of the score, where it is no tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def num_classes(self) -> int:
        return self.members[0].num_classes

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.floats else torch.uint8


class Decision(NamedTuple):
    """Per image: the class, the confidence in it, and whether it is kept."""

    classes: Tensor
    confidence: Tensor
    kept: Tensor


class SelectiveModel(nn.Module):
    """Maps images and a threshold to classes, confidences, and what is kept."""

    mean: Tensor
    std: Tensor

    def __init__(self, description: Description, members: Sequence[Member], score: Score) -> None:
        super().__init__()
        self.description = description
        self.members = nn.ModuleList(members)
        self.score = score
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(description, name)), persistent=False)

    def read(self, images: Tensor) -> Reading:
        """Return what the networks make of images: in float32, as the suite stores it, and then in float64."""
        normalised = normalise(images, self.mean, self.std)
        found = [member(normalised) for member in self.members]
        if self.description.combination == "alone":
            (alone,) = found
            features = None if alone.features is None else alone.features.double()
            return Reading(alone.logits.double(), features, {name: aux.double() for name, aux in alone.aux.items()})
        logits = torch.stack([each.logits for each in found]).double()
        return Reading(self.combined(logits).float().double(), None, {})

    def combined(self, logits: Tensor) -> Tensor:
        """Return one table of logits for those of the members (M, N, K)."""
        if self.description.combination == "mean probability":
            return log_mean_probability(logits)
        return logits[0] / fraction(self.description.temperature, logits)

    def forward(self, images: Tensor, threshold: Tensor) -> Decision:
        """Return the decision on images (N, C, H, W): what is at least as confident as the threshold is kept."""
        reading = self.read(images)
        confidence = self.score(reading)
        return Decision(reading.logits.argmax(1), confidence, confidence >= threshold)


def build_model(description: Description, tensors: Mapping[str, Tensor]) -> SelectiveModel:
    """Return the model of a description with its tensors. Raise RuntimeError or KeyError where they do not fit."""
    members = [empty_member(each) for each in description.members]
    fitted = {name.removeprefix(SCORE): value for name, value in tensors.items() if name.startswith(SCORE)}
    model = SelectiveModel(description, members, Score(description.score, fitted, description.settings))
    model.load_state_dict(dict(tensors))
    return model.eval()
