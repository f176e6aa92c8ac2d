"""How a network is trained: its layers, the augmentation of its images, its optimiser and its rate."""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from benchmark.base.limits import Positive, Weight, Within, shown
from benchmark.base.schema import check, later, unidentified
from benchmark.config.ingredients import PUBLISHED_RHO, check_owners

EPOCHS = Within(1, 100_000, "a training would last for years")
NO_EPOCH = Within(0, EPOCHS.most, EPOCHS.why)
LIBRARIES = ("timm", "torchvision")
TRAINED = re.compile(r"all|head|last:[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class NetworkConfig:
    name: str
    """`vgg16`, `small_cnn`, `mlp`, `linear`, `torchvision:NAME` or `timm:NAME`."""
    widths: tuple[Annotated[int, Within(1, 65_536, "its filters fit into no memory")], ...] = ()
    """small_cnn: channels of each 3×3 convolution. mlp: units of each hidden layer."""
    dropout: float = 0.0
    """small_cnn: element-wise dropout before the last layer. mlp: after each hidden layer."""
    pool: Literal["average", "flatten"] = "average"
    """small_cnn: what becomes of the last maps; `flatten` keeps where things are."""
    classifier: Literal["linear", "cosine"] = later("linear")
    """The last layer: W·f + b, or s·cos(f, w) without a bias."""
    cosine_scale: Positive = later(8.0)
    """s."""
    feature: Annotated[int, Within(0, 65_536, "its weights fit into no memory")] = later(0)
    """small_cnn: units of a hidden layer with BatchNorm before the last layer; they are the features. 0: none, the
    maps themselves are the features."""
    residual: bool = later(False)
    """small_cnn with `feature`: whether two more convolutions with a shortcut follow the last one."""
    batch_norm: bool = later(True)
    """mlp: whether each hidden layer has BatchNorm before its ReLU."""
    weights: str = unidentified("")
    """timm, torchvision: what training begins with: `default`, the weights that the library's hub has, or a file of
    tensors (.safetensors, .pth). What the weights are, their hash says."""
    weights_sha256: str = later("")
    """The SHA-256 of their file; filled in when jobs are planned. A file with another one is refused."""
    normalise: Literal["task", "own"] = unidentified("task")
    """Whose mean and std pixels are normalised with. own: those that the weights were trained with. task: those of the
    task, and where `weights` is set and the task names none, those of the weights. The numbers are part of the id."""
    input_size: Annotated[int, Within(0, 4096, "a batch of such images fits into no memory")] = later(0)
    """timm, torchvision: images are resized on the device to this side before the network sees them; 0 = as they
    are."""
    train: str = later("all")
    """What of a network with `weights` is trained: `all`, `head` (the last layer), or `last:N` (it and the last N
    stages). The rest stays as it is, with the statistics of its BatchNorm."""

    def __post_init__(self) -> None:
        check(0 <= self.dropout < 1, f"dropout must be at least 0 and below 1, got {self.dropout}")
        check_owners(self, {"cosine_scale": ("cosine",)}, "classifier")
        check(TRAINED.fullmatch(self.train) is not None, f"train must be all, head or last:N, got {shown(self.train)}")
        check(bool(self.feature) or not self.residual, "residual needs feature, the size of the hidden layer")
        is_library = self.name.partition(":")[0] in LIBRARIES
        for name in ("weights", "input_size"):
            check(is_library or not getattr(self, name), f"{name} belongs to timm:NAME and torchvision:NAME")
        for name, neutral in (("train", "all"), ("normalise", "task")):
            check(self.is_pretrained or getattr(self, name) == neutral, f"{name} = {getattr(self, name)} needs weights")

    @property
    def is_pretrained(self) -> bool:
        """Return whether it begins with weights of a file; records have their hash alone."""
        return bool(self.weights or self.weights_sha256)

    @property
    def body(self) -> "NetworkConfig":
        """Return the settings of what makes the features, whatever the last layer is."""
        return replace(self, classifier="linear", cosine_scale=8.0)


@dataclass(frozen=True)
class AugmentConfig:
    crop_padding: Annotated[int, Within(0, 512, "little but the border would be seen")] = 0
    flip: bool = False
    random_resized_crop: bool = False
    color_jitter: Annotated[float, Within(0, 10, "little of the image would be left")] = 0.0
    """Brightness, contrast and saturation, each by up to this factor."""
    crop_scale: tuple[float, ...] = later((0.08, 1.0))
    """random_resized_crop: the least and the largest share of an image's area."""
    noise: Annotated[float, Within(0, 100, "nothing of the vector would be seen")] = later(0.0)
    """Vectors: the std of Gaussian noise, in units of each column's own std."""
    feature_dropout: float = later(0.0)
    """Vectors: the share of the columns that get their mean instead, drawn for each vector."""

    def __post_init__(self) -> None:
        check(
            len(self.crop_scale) == 2 and 0 < self.crop_scale[0] <= self.crop_scale[1] <= 1,
            f"crop_scale must be two shares in order, above 0 and up to 1, got {list(self.crop_scale)}",
        )
        check(
            0 <= self.feature_dropout < 1,
            f"feature_dropout must be at least 0 and below 1, got {self.feature_dropout:g}",
        )

    @property
    def changes_images(self) -> bool:
        """Return whether it does what only images can go through."""
        return bool(self.crop_padding or self.flip or self.random_resized_crop or self.color_jitter)

    @property
    def changes_vectors(self) -> bool:
        """Return whether it does what only vectors can go through."""
        return bool(self.noise or self.feature_dropout)


@dataclass(frozen=True)
class OptimizerConfig:
    name: Literal["sgd", "adam", "adamw"]
    lr: Annotated[float, Within(1e-12, 10**9, "no training survives such steps")]
    momentum: float = 0.0
    weight_decay: Annotated[float, Within(0, 10**4, "no weight would be left")] = 0.0
    sharpness: Literal["none", "sam", "f-sam", "asam"] = later("none")
    """Take the gradient at θ + ε, where the loss is worst nearby, and step from θ. sam: ε = ρ·g/‖g‖. asam: ε =
    ρ·θ²g/‖|θ|g‖. f-sam (friendly): ε = ρ·d/‖d‖ with d = g − σ·m and m ← λ·m + (1−λ)·g."""
    rho: Annotated[float, Within(0, 1000, "no training survives such steps")] = later(0.0)
    """ρ; 0: as published, 0.05 for sam, 0.2 for f-sam, 2 for asam."""
    sigma: Weight = later(1.0)
    """f-sam: σ."""
    smoothing: float = later(0.8)
    """f-sam: λ."""
    statistics: Literal["first", "both"] = later("first")
    """Which of the two passes moves the statistics of BatchNorm; released codes let both."""
    head_lr: Annotated[float, Within(0, 10**9, "no training survives such steps")] = later(0.0)
    """The learning rate of all that is not the body of the network: its last layer, and what a method adds. The
    schedule scales both. 0 = the same as the rest."""

    def __post_init__(self) -> None:
        check(0 <= self.momentum < 1, f"momentum must be at least 0 and below 1, got {self.momentum}")
        check(self.name == "sgd" or not self.momentum, f"momentum belongs to sgd, not to {self.name}: set it to 0")
        check(0 <= self.smoothing < 1, f"smoothing must be at least 0 and below 1, got {self.smoothing:g}")
        check_owners(self, dict.fromkeys(("rho", "statistics"), (*PUBLISHED_RHO,)), "sharpness")
        check_owners(self, dict.fromkeys(("sigma", "smoothing"), ("f-sam",)), "sharpness")

    @property
    def used_rho(self) -> float:
        return self.rho or PUBLISHED_RHO[self.sharpness]


@dataclass(frozen=True)
class ScheduleConfig:
    name: Literal["constant", "step", "cosine", "cyclic", "one-cycle"] = "constant"
    factor: Annotated[float, Within(0, 1000, "no training survives such steps")] = 1.0
    every: Annotated[int, Within(1, 100_000)] = 1
    """step: the learning rate is multiplied by `factor` every so many epochs."""
    cycles: Annotated[int, Within(1, 100_000)] = later(1)
    """cyclic: the number of times the rate falls from its full value to zero along a cosine."""
    rise: float = later(0.2)
    """one-cycle: the share of the training in which the rate rises, in a line from a tenth of its full value; along a
    cosine it then falls to zero."""
    hold_from: Annotated[int, NO_EPOCH] = later(0)
    """Hold the rate after so many epochs, at `hold_rate` times optimizer.lr; 0: never."""
    hold_rate: Annotated[float, Within(0, 1000, "no training survives such steps")] = later(0.0)

    def __post_init__(self) -> None:
        check(0 < self.rise < 1, f"rise must lie between 0 and 1, got {self.rise:g}")
        check_owners(self, {"rise": ("one-cycle",)}, "name")
        check(bool(self.hold_from) or not self.hold_rate, "hold_rate needs hold_from, the epochs before it holds")
