"""Compute a score on what networks make of images, with what was fitted for it beforehand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmark.base.errors import UserError
from benchmark.measure import catalogue, fitted, scores
from benchmark.measure.catalogue import FinishedRun
from benchmark.selector import formulas

Parameter = NDArray[np.float64] | float | int | None
Parameters = Mapping[str, Parameter]
"""What is fitted of a score, by name. Arrays and floats become tensors; whole numbers and None are settings."""
COMPARES = "it compares an image with all {}, which a selector would have to carry with it; choose another score"


class Reading(NamedTuple):
    """What networks make of images, in float64."""

    logits: Tensor
    features: Tensor | None
    aux: Mapping[str, Tensor]

    def part(self, name: str) -> Tensor:
        """Return logits, features, or a further output."""
        found = {"logits": self.logits, "features": self.features, **self.aux}.get(name)
        if found is None:
            raise UserError(f"the network has no output '{name}', which its score needs")
        return found


def nothing(run: FinishedRun) -> Parameters:
    return {}


@dataclass(frozen=True)
class Formula:
    """How a score is computed of some parts of a reading, and what is fitted for it."""

    apply: Callable[..., Tensor]
    reads: tuple[str, ...] = ("logits",)
    fit: Callable[[FinishedRun], Parameters] = nothing


def response_or_pnorm(u: Tensor, p: int | None) -> Tensor:
    return formulas.softmax_response(u) if p is None else formulas.max_logit_pnorm(u, p)


def heated_response(u: Tensor, heat: Tensor) -> Tensor:
    return formulas.softmax_response(u / heat)


def class_centres(run: FinishedRun) -> Parameters:
    means, precision = scores.class_centres(catalogue.features_of(run.train), run.train.labels)
    return {"means": means, "precision": precision}


def costs(run: FinishedRun) -> Parameters:
    known, wrong = catalogue.logits_of(run.validation), catalogue.validation_errors(run)
    return {"costs": fitted.relative_uncertainty_matrix(known, wrong)}


WHITE = ("centre", "whitening", "white_means")


def two_centres(run: FinishedRun) -> Parameters:
    known, labels = catalogue.features_of(run.validation), run.validation.labels
    wrong = catalogue.validation_errors(run)
    sides = {"wrong": wrong, "right": ~wrong}
    return {
        f"{side}_{name}": array
        for side, rows in sides.items()
        for name, array in zip(WHITE, fitted.white_centres(known[rows], labels[rows]), strict=True)
    }


def delta_mahalanobis(features: Tensor, **known: Tensor) -> Tensor:
    to_wrong, to_right = (
        formulas.nearest_white(features, *(known[f"{side}_{name}"] for name in WHITE)) for side in ("wrong", "right")
    )
    return to_wrong - to_right


def usual_norms(run: FinishedRun) -> Parameters:
    start, slope = fitted.usual_range(fitted.feature_norm(catalogue.features_of(run.train)))
    return {"start": start, "slope": slope}


def residual(run: FinishedRun) -> Parameters:
    train, layer = run.train, run.classifier
    return vars(fitted.residual_of(catalogue.logits_of(train), catalogue.features_of(train), layer.weight, layer.bias))


def minus(output: Tensor) -> Tensor:
    return -output


FORMULAS: dict[str, Formula] = {
    "SR": Formula(formulas.softmax_response),
    "margin": Formula(formulas.margin),
    "entropy": Formula(formulas.negative_entropy),
    "max logit": Formula(formulas.max_logit),
    "energy": Formula(formulas.log_sum_exp),
    "DOCTOR": Formula(formulas.doctor),
    "pNorm": Formula(response_or_pnorm, fit=lambda run: {"p": catalogue.best_exponent(run)}),
    "Mahalanobis": Formula(formulas.centre_closeness, ("features",), class_centres),
    "cosine logit": Formula(formulas.cosine_logit),
    "logit margin": Formula(formulas.logit_margin),
    "normalised margin": Formula(
        formulas.normalised_margin, fit=lambda run: {"lengths": scores.row_lengths(run.classifier.weight)}
    ),
    "GEN": Formula(formulas.generalised_entropy),
    "Rel-U": Formula(formulas.cost_of_classes, fit=costs),
    "delta Mahalanobis": Formula(delta_mahalanobis, ("features",), two_centres),
    "SIRC": Formula(formulas.discounted_response, ("logits", "features"), usual_norms),
    "ViM": Formula(formulas.level_less_residual, ("logits", "features"), residual),
    "temperature": Formula(heated_response, fit=lambda run: {"heat": catalogue.best_heat(run)}),
    "abstention": Formula(formulas.abstention, ("logits", "abstain")),
    "selection": Formula(minus, ("reject",)),
    "variance": Formula(minus, ("variance",)),
    "learnt uncertainty": Formula(minus, ("uncertainty",)),
    "mutual information": Formula(minus, ("mutual information",)),
    "disagreement": Formula(formulas.disagreement, ("logits", "disagreement")),
}
REFUSED = {"kNN": COMPARES.format("training images"), "delta kNN": COMPARES.format("validation images")}


def check_exportable(name: str) -> None:
    """Raise UserError where a score cannot be exported, with the reason."""
    if name in FORMULAS:
        return
    reason = REFUSED.get(name, "it is the code of a file of your own, and an exported selector holds no code")
    raise UserError(f"the score {name} cannot be exported: {reason}")


class Score(nn.Module):
    """A score with what was fitted for it."""

    def __init__(self, name: str, parameters: Mapping[str, Tensor], settings: Mapping[str, int | None]) -> None:
        super().__init__()
        self.name, self.settings = name, dict(settings)
        for key, value in parameters.items():
            self.register_buffer(key, value)

    @classmethod
    def fitted(cls, name: str, run: FinishedRun) -> "Score":
        """Return a score with its parameters from validation and training images of a run."""
        found = FORMULAS[name].fit(run)
        settings = {key: value for key, value in found.items() if value is None or isinstance(value, int)}
        tensors = {key: torch.tensor(value, dtype=torch.float64) for key, value in found.items() if key not in settings}
        return cls(name, tensors, settings)

    def forward(self, reading: Reading) -> Tensor:
        """Return the confidence of each image."""
        formula = FORMULAS[self.name]
        confidence: Tensor = formula.apply(
            *(reading.part(name) for name in formula.reads), **dict(self.named_buffers()), **self.settings
        )
        return confidence
