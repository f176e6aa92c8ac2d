"""The contract between the core and the methods, and the only module of the core that methods import.

**Confidence is always "larger = kept first".** All state of a method is parameters and buffers, so `state_dict()` is
the whole checkpoint. `training_step` reads state and `after_step` writes it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from benchmark.base.limits import Epochs, Positive, Weight, Within
from benchmark.base.schema import check, later
from benchmark.measure.catalogue import FinishedRun, Predicted, Unavailable, confidence_of
from benchmark.measure.prediction import Evidence, Floats, Prediction, Stored
from benchmark.measure.scores import Confidence, abstention, softmax_response


@dataclass(frozen=True)
class Task:
    """What a method may know of the problem."""

    num_classes: int
    num_train: int
    feature_dim: int


@dataclass(frozen=True)
class Batch:
    """Training images on the device. `indices` are positions in the training split, the same in every epoch."""

    views: tuple[Tensor, ...]
    labels: Tensor
    indices: Tensor
    partners: Tensor | None = None
    """In a mixed batch: the labels of the images that the others are mixed with."""
    share: float = 1.0
    """In a mixed batch: λ, the share of each image itself and of its label."""
    beside: "Batch | None" = None
    """A mixed batch whose plain cross-entropy is added to the loss of this one, which need not know of it."""
    outliers: Tensor | None = None
    """As many images of none of the classes, for a method that `needs_outliers`."""
    stream: int = 0
    """Seeds what is drawn once for the whole batch."""

    @property
    def images(self) -> Tensor:
        return self.views[0]

    def mean_loss(self, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """Return loss(y), or λ·loss(y) + (1−λ)·loss(y′) in a mixed batch, of a loss that is linear in the target."""
        if self.partners is None:
            return loss(self.labels)
        return self.share * loss(self.labels) + (1 - self.share) * loss(self.partners)

    def draw_beta(self, alpha: float) -> float:
        """Return a draw of Beta(α, α), the same on every rank and in a second pass over the batch."""
        return float(np.random.Generator(np.random.PCG64(self.stream)).beta(alpha, alpha))


@dataclass(frozen=True)
class Progress:
    """Where training stands; all counts start at 0."""

    epoch: int
    num_epochs: int
    step: int
    num_steps: int


@dataclass(frozen=True)
class Step:
    """What `training_step` returns. `carry` goes to `after_step`; 0-d `logs` are averaged per epoch.

    On several GPUs each computes the step of a part of the batch, and `after_step` gets the whole of batch and carry:
    a carry holds tensors with a row per sample, in tuples, lists or dicts.
    """

    loss: Tensor
    carry: Any = None
    logs: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Validation:
    """The validation split as the method sees it at the end of an epoch (evaluation mode)."""

    prediction: Prediction[Tensor]
    labels: Tensor


class Divide(nn.Module):
    """Divides by a number."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden / self.by


@dataclass(frozen=True)
class Doubt:
    """Where a further output of `predict` comes from, which is larger where there is more doubt."""

    part: str = ""
    """The submodule of the method that makes it of the features, in one column; empty: the network does."""
    output: int = 0
    """Its place among the network's outputs beyond the K classes."""
    minus: bool = False
    """Whether it is minus that, which grows with confidence."""

    def of(self, owner: nn.Module, beyond: Tensor, features: Tensor) -> Tensor:
        """Return it for each image; `owner` has the submodule, `beyond` are the outputs beyond the classes."""
        found: Tensor = owner.get_submodule(self.part)(features)[:, 0] if self.part else beyond[:, self.output]
        return -found if self.minus else found


def read_outputs(
    owner: nn.Module, network: nn.Module, images: Tensor, classes: int, doubts: Mapping[str, Doubt]
) -> Prediction[Tensor]:
    """Return what a network says of images: K class logits, and the further outputs that are declared."""
    outputs, features = network(images)
    aux = {name: doubt.of(owner, outputs[:, classes:], features) for name, doubt in doubts.items()}
    return Prediction(outputs[:, :classes], features, aux)


class Contestant:
    """What a method that trains and one that combines predictions both declare."""

    title: ClassVar[str]
    """One line for `list`."""
    reference: ClassVar[str]
    """Paper and year."""
    labels: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Each name shown in tables → the config that makes it."""
    needs_validation: ClassVar[bool] = False
    """Reads the validation split; on a task without one its column is a dash."""
    own_scores: ClassVar[tuple[str, ...]] = ("SR",)
    """Names of the scores that its table shows (benchmark/measure/catalogue.py), the published one first."""

    @dataclass(frozen=True)
    class Config:
        """Hyper-parameters, with the paper's values as defaults."""

    @classmethod
    def scores(cls, prediction: Stored) -> dict[str, Confidence]:
        """Return confidences by name, the published one first. Pure: repeated from stored predictions at any time.

        A file of your own may define a score here, as a static method, that no other method has.
        """
        run = Predicted(Evidence(prediction, np.zeros(0, np.int64)))
        return {name: confidence_of(name, run) for name in cls.own_scores}


class Method(Contestant, nn.Module):
    """A way to train a network that may abstain, and to score its predictions."""

    extra_outputs: ClassVar[int] = 0
    """Outputs of the network beyond the K classes; they come last."""
    doubts: ClassVar[Mapping[str, Doubt]] = {}
    """Further outputs of `predict`, by name. A prediction that no such declaration describes overrides `predict`."""
    warmup: ClassVar[str | None] = None
    """The method that trains the first `config.warmup_epochs` epochs in this one's place."""
    num_views: ClassVar[int] = 1
    """Independently augmented views of each image per batch."""
    starts_from: ClassVar[str | None] = None
    """The method whose final network, of the same seed, this one takes over; it trains nothing of that."""
    second_stage: ClassVar[bool] = False
    """Whether it then trains parameters of its own beside the frozen network: `config.epochs` epochs with Adam at the
    rate `config.lr`, on `config.images`, which are "train" or "validation"."""
    one_per_coverage: ClassVar[str | None] = None
    """Config field that is set to each of the task's `model_coverages` in turn: one training for each."""
    stochastic: ClassVar[bool] = False
    """`predict` draws random numbers; the core gives each batch its own stream."""
    takes_mixed: ClassVar[bool] = False
    """Its loss is made with `Batch.mean_loss`, so that mixed images, which have two labels, can train it."""
    needs_outliers: ClassVar[bool] = False
    """`Batch.outliers` has images of the task that `data.outliers` names; where it names none, the column is a dash."""
    couples_samples: ClassVar[bool] = False
    """The loss of a batch is not the mean of its samples' losses; only then may their order matter."""

    def __init__(self, network: nn.Module, task: Task, config: Any) -> None:
        super().__init__()
        self.network = network.requires_grad_(False) if self.second_stage else network
        self.task = task
        self.config = config

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all parts; a frozen network stays in evaluation mode."""
        super().train(mode)
        if self.second_stage:
            self.network.eval()
        return self

    @classmethod
    def trains(cls) -> bool:
        """Tell whether it trains anything itself."""
        return cls.starts_from is None or cls.second_stage

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        """Return the loss of a batch. Change no state but the BatchNorm statistics of the trained network."""
        raise NotImplementedError(f"{type(self).__name__} defines no training_step")

    def after_step(self, batch: Batch, carry: Any, progress: Progress) -> None:
        """Update the state; nothing else may. Called without gradients after each optimiser step."""

    def after_epoch(self, progress: Progress, validation: Validation | None) -> None:
        """Do what is due after an epoch that this method trained. Called without gradients.

        `validation` is the validation split if the method needs it.
        """

    def health(self) -> Mapping[str, Tensor]:
        """Return 0-d numbers for `history.csv` at the end of an epoch, which show whether each part works."""
        return {}

    def predict(self, images: Tensor) -> Prediction[Tensor]:
        """Return K class logits, never more. Further outputs go to `aux`, each larger where there is more doubt."""
        return read_outputs(self, self.network, images, self.task.num_classes, self.doubts)

    def notes(self) -> list[str]:
        """Return warnings to print under the table, e.g. that a part of the method never started."""
        return []


@dataclass(frozen=True)
class Member:
    """A training whose stored predictions a `Derived` method combines."""

    method: str
    """File of the method that trains it."""
    seed: int
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the task that differ, e.g. {"schedule": {"name": "cyclic", "cycles": 5}}."""
    epoch: int | None = None
    """The state after so many epochs; None is the one the task tests."""


@dataclass(frozen=True)
class Combination:
    """A prediction combined from others, and numbers that describe how."""

    prediction: Stored
    facts: Mapping[str, float] = field(default_factory=dict)


class Derived(Contestant):
    """Combines stored predictions and trains nothing."""

    uses_final_weights: ClassVar[bool] = True
    """Whether a member is the state at the end of a training: only that can be an average of weights."""
    computed_as: ClassVar[Literal["", "mean probability", "over temperature"]] = ""
    """How logits follow from those of the members, where one of these ways says it; an export can then compute them.
    `mean probability`: log (1/M) Σ_m softmax(u_m); `over temperature`: u/T, T the fact `temperature`."""

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        """Return what must be trained; runs that the grid has anyway are not trained again."""
        raise NotImplementedError

    @staticmethod
    def combine(config: Any, predictions: Sequence[Stored], validation: Sequence[Evidence]) -> Combination:
        """Return one prediction from those of the members on the same images, in their order.

        `validation` are the members' predictions on the validation split, empty where there is none.
        """
        raise NotImplementedError


class Recipe(Contestant):
    """A label of another method with certain ingredients, under the name by which it is known."""

    of: ClassVar[str]
    """The label."""
    changes: ClassVar[Mapping[str, Any]]
    """Fields of the task, e.g. {"averaging": {"name": "swa"}}."""


def accuracy(class_logits: Tensor, labels: Tensor) -> Tensor:
    """Return the share of correct arg-maxima, as a 0-d tensor for `Step.logs`."""
    return (class_logits.detach().argmax(dim=1) == labels).to(torch.float32).mean()
