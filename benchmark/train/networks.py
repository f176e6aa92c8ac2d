"""Build networks: images → (logits, features). They have K outputs; extra outputs are a layer of their own."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, linear, normalize

from benchmark.base import added
from benchmark.base.errors import UserError, brief
from benchmark.base.names import unknown_name
from benchmark.config.training import NetworkConfig
from benchmark.train.bodies import ConditionedBody, Residual, VGG16Body, convolution
from benchmark.train.pretrained.freezing import freeze
from benchmark.train.pretrained.libraries import LIBRARIES
from benchmark.train.pretrained.weights import load_weights


class Network(nn.Module):
    """body → features (B, D) → dropout → linear head, with optional extra outputs after the K classes."""

    def __init__(self, body: nn.Module, head: nn.Linear, dropout: float = 0.0) -> None:
        super().__init__()
        self.body = body
        self.dropout = nn.Dropout(dropout)
        self.head = head
        self.extra: nn.Linear | None = None
        self.head_name = ""
        """What the head is called in files of weights."""
        self.input_size = 0
        """The side that images are resized to; 0: as they are."""
        self.frozen: tuple[str, ...] = ()
        """Parts of the body that are not trained, by name."""
        self.memory_format = torch.contiguous_format
        self.inner_dtype: torch.dtype | None = None
        self.register_load_state_dict_post_hook(forget_counts)  # type: ignore[no-untyped-call]

    @property
    def feature_dim(self) -> int:
        return self.head.in_features

    def add_outputs(self, count: int, *, zero: bool) -> None:
        """Add outputs, drawn from the same distribution as the head's initial weights, or zero after a warm-up.

        Warm-up never trains them. Where it is long, weight decay alone takes them to zero (less than a millionth is
        left on CIFAR as published). On small tasks 15 to 99 % would be left, and all of it without weight decay. There
        zero is a choice: a shared warm-up need not know of the extra outputs.
        """
        self.extra = nn.Linear(self.feature_dim, count)
        initialise = getattr(self.body, "initialise_linear", None)
        if initialise is not None:
            initialise(self.extra)
        if zero:
            nn.init.zeros_(self.extra.weight)
            nn.init.zeros_(self.extra.bias)

    def set_speed(self, *, channels_last: bool, amp: str, compiled: bool) -> None:
        """Set how it computes, not what. A copy of the network computes alike, but is not compiled."""
        stop_counting_batches(self)
        if channels_last:
            self.memory_format = torch.channels_last
            self.to(memory_format=torch.channels_last)
        self.inner_dtype = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}[amp]
        if compiled:
            self.compile()

    def train(self, mode: bool = True) -> "Network":
        """Set the mode. What is frozen always stays in evaluation mode, and with it the statistics of its BatchNorm."""
        super().train(mode)
        for name in self.frozen:
            self.body.get_submodule(name).eval()
        return self

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, features, _ = self.with_hidden(images)
        return logits, features

    def with_hidden(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits, features, and features after dropout for further heads. Only `forward` is ever compiled.

        The body computes in half precision, if so set; the last layer never does: rounded logits would tie.
        """
        images = resized(images, self.input_size).contiguous(memory_format=self.memory_format)
        with torch.autocast(images.device.type, self.inner_dtype) if self.inner_dtype else nullcontext():
            features = self.body(images)
        if self.inner_dtype:
            features = features.float()
        hidden = self.dropout(features)
        logits = self.head(hidden)
        if self.extra is not None:
            logits = torch.cat([logits, self.extra(hidden)], dim=1)
        return logits, features, hidden


def resized(images: Tensor, side: int) -> Tensor:
    """Return images at another size, by linear interpolation with antialiasing; at 0 as they are."""
    if side in (0, images.shape[-1]):
        return images
    return interpolate(images, size=(side, side), mode="bilinear", antialias=True)


class CosineClassifier(nn.Linear):
    """s·cos(f, w_k), without a bias. Outputs beyond the classes stay linear: a cosine cannot begin at zero."""

    def __init__(self, in_features: int, out_features: int, scale: float) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.scale = scale

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * linear(normalize(features), normalize(self.weight))


def with_classifier(network: Network, config: NetworkConfig) -> Network:
    """Return a network with the last layer that its task names. It begins with the weights of the linear one."""
    if config.classifier == "cosine":
        cosine = CosineClassifier(network.head.in_features, network.head.out_features, config.cosine_scale)
        cosine.weight = network.head.weight
        network.head = cosine
    return network


def stop_counting_batches(network: nn.Module) -> None:
    """Save BatchNorm a kernel per layer: these networks do not use the average that needs the number of batches."""
    for layer in network.modules():
        is_plain = isinstance(layer, nn.modules.batchnorm._BatchNorm) and not isinstance(layer, nn.SyncBatchNorm)
        if is_plain and layer.momentum is not None:
            layer.num_batches_tracked = None  # type: ignore[assignment]


def forget_counts(network: nn.Module, keys: Any) -> None:
    """Accept checkpoints with and without counts of batches: older ones and those of several GPUs have them."""
    for listed in (keys.unexpected_keys, keys.missing_keys):
        listed[:] = [key for key in listed if not key.endswith(".num_batches_tracked")]


def vgg16(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build the VGG16 of the selective-classification papers, with BatchNorm and dropout."""
    if shape[1] < 32 or shape[1] != shape[2]:
        raise UserError(f"network vgg16 needs square images of at least 32×32, got {shape[1]}×{shape[2]}")
    body = VGG16Body(shape[0], shape[1])
    head = nn.Linear(512, num_classes)
    body.initialise_linear(head)
    return Network(body, head, dropout=0.5)


def small_cnn(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build 3×3 convolutions with BatchNorm, each halving the resolution; then perhaps a hidden layer of features."""
    if not config.widths:
        raise UserError("network small_cnn needs network.widths, e.g. [32, 64, 128]")
    if min(shape[1:]) >> len(config.widths) < 1:
        raise UserError(f"network.widths has too many layers for images of {shape[1]}×{shape[2]}")
    average = config.pool == "average"
    inputs = config.widths[-1] * (1 if average else math.prod(side >> len(config.widths) for side in shape[1:]))
    if config.feature:
        return conditioned_cnn(config, num_classes, shape[0], inputs)
    layers: list[nn.Module] = []
    for before, width in zip((shape[0], *config.widths[:-1]), config.widths, strict=True):
        layers += [*convolution(before, width), nn.MaxPool2d(2)]
    if average:
        layers[-1] = nn.AdaptiveAvgPool2d(1)
    return Network(nn.Sequential(*layers, nn.Flatten()), nn.Linear(inputs, num_classes), config.dropout)


def conditioned_cnn(config: NetworkConfig, num_classes: int, channels: int, inputs: int) -> Network:
    """Build a small CNN whose features are a hidden layer with BatchNorm."""
    layers: list[nn.Module] = []
    for before, width in zip((channels, *config.widths[:-1]), config.widths, strict=True):
        layers += convolution(before, width, nn.MaxPool2d(2))
    if config.residual:
        layers.append(Residual(config.widths[-1]))
    if config.pool == "average":
        layers.append(nn.AdaptiveAvgPool2d(1))
    hidden = [nn.Linear(inputs, config.feature, bias=False), nn.BatchNorm1d(config.feature), nn.ReLU()]
    body, head = ConditionedBody(*layers, nn.Flatten(), *hidden), nn.Linear(config.feature, num_classes)
    body.initialise_linear(head)
    return Network(body, head, config.dropout)


def mlp(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build hidden layers of linear → BatchNorm → ReLU, for vectors or flattened images; the feature is the last."""
    if not config.widths:
        raise UserError("network mlp needs network.widths, e.g. [128, 64]")
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, width in zip((math.prod(shape), *config.widths[:-1]), config.widths, strict=True):
        if config.dropout and len(layers) > 1:
            layers.append(nn.Dropout(config.dropout))
        layers.append(nn.Linear(inputs, width, bias=not config.batch_norm))
        layers += [nn.BatchNorm1d(width), nn.ReLU()] if config.batch_norm else [nn.ReLU()]
    return Network(nn.Sequential(*layers), nn.Linear(config.widths[-1], num_classes), config.dropout)


def linear_network(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build a linear layer alone, for vectors or flattened images; the feature is the vector itself."""
    return Network(nn.Flatten(), nn.Linear(math.prod(shape), num_classes))


Builder = Callable[[NetworkConfig, int, tuple[int, int, int]], Network]
OWN: dict[str, Builder] = {"vgg16": vgg16, "small_cnn": small_cnn, "mlp": mlp, "linear": linear_network}
SETTINGS = {
    "small_cnn": ("widths", "dropout", "pool", "feature", "residual"),
    "mlp": ("widths", "dropout", "batch_norm"),
}
"""The settings that some networks read, beyond those of the last layer."""
FOR_VECTORS = ("mlp", "linear")


def build_network(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build the network of a task for images of `shape` (C, H, W), initialised from torch's default generator."""
    return with_classifier(build_linear(config.body, num_classes, shape), config)


def build_linear(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build a network whose last layer is linear."""
    library = config.name.partition(":")[0]
    if config.name in added.NETWORKS:
        return added_network(config, num_classes, shape)
    if config.name not in OWN and library not in LIBRARIES:
        known = [*OWN, *added.NETWORKS, "torchvision:NAME", "timm:NAME"]
        raise UserError(f"{unknown_name(config.name, known, 'network')}; {added.HOW}")
    check_settings(config)
    if shape[1:] == (1, 1) and config.name not in FOR_VECTORS:
        raise UserError(f"network {config.name} needs images; for vectors take {' or '.join(FOR_VECTORS)}")
    if library in LIBRARIES:
        return library_network(config, library, num_classes, shape)
    return OWN[config.name](config, num_classes, shape)


def library_network(config: NetworkConfig, library: str, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build a network of another library, with the weights that its file has. Without memory, it gets none."""
    body, head, head_name = LIBRARIES[library](config, num_classes, shape[0])
    network = Network(body, head)
    network.head_name, network.input_size = head_name, config.input_size
    if config.weights and not head.weight.is_meta:
        load_weights(body, head, head_name, config)
    network.frozen = freeze(body, config.train, config.name)
    return network


def check_settings(config: NetworkConfig) -> None:
    """Raise UserError for a setting that the network does not read."""
    default = vars(NetworkConfig(config.name))
    for name in dict.fromkeys(name for names in SETTINGS.values() for name in names):
        if getattr(config, name) != default[name] and name not in SETTINGS.get(config.name, ()):
            owners = " and ".join(network for network, names in SETTINGS.items() if name in names)
            raise UserError(f"network.{name} belongs to {owners}, not to {config.name}")


def added_network(config: NetworkConfig, num_classes: int, shape: tuple[int, int, int]) -> Network:
    """Build a network of a user's own file. Raise UserError for whatever goes wrong in it."""
    build: Builder = added.NETWORKS[config.name].value
    try:
        network: object = build(config, num_classes, shape)
    except (UserError, MemoryError):
        raise
    except Exception as error:
        size = "×".join(map(str, shape))
        raise UserError(f"network '{config.name}' cannot be built for images of {size} ({brief(error)})") from error
    if not isinstance(network, Network) or not isinstance(network.head, nn.Linear):
        raise UserError(
            f"network '{config.name}' must be a Network(body, head) of benchmark/train/networks.py whose head is "
            f"nn.Linear, got {type(network).__name__}"
        )
    if network.head.out_features != num_classes:
        raise UserError(f"network '{config.name}' has {network.head.out_features} outputs for {num_classes} classes")
    return network


def network_titles() -> dict[str, str]:
    """Return all networks by their names, with a line about each."""
    built_in = OWN | {f"{library}:NAME": build for library, build in LIBRARIES.items()}
    titles = {name: (build.__doc__ or "").splitlines()[0] for name, build in built_in.items()}
    return titles | {name: network.title for name, network in added.NETWORKS.items()}
