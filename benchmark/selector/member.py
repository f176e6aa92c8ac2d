"""A trained network with the heads that its further outputs need: described as plain values, and built again."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.base import added
from benchmark.base.errors import UserError
from benchmark.config.task import TaskConfig
from benchmark.config.training import NetworkConfig
from benchmark.interface import Doubt, Method, read_outputs
from benchmark.measure.prediction import Prediction
from benchmark.selector.layers import build_layers, describe_layers
from benchmark.train.networks import build_network, forget_counts, stop_counting_batches


@dataclass(frozen=True)
class Architecture:
    """All that is needed to build a network and its heads, but for their weights."""

    network: NetworkConfig
    num_classes: int
    shape: tuple[int, ...]
    """(C, H, W) of an image."""
    extra_outputs: int = 0
    channels_last: bool = False
    doubts: dict[str, Any] = field(default_factory=dict)
    """Where each further output comes from, by name."""
    parts: dict[str, Any] = field(default_factory=dict)
    """The layers of each head, by the name of the submodule."""


def why_not(method: type[Method]) -> str:
    """Return why what a method predicts cannot be rebuilt; empty where it can."""
    if method.stochastic:
        return "each prediction draws random numbers, and a selector must say the same of an image each time"
    if method.predict is not Method.predict:
        return "it predicts with code of its own, and an exported selector holds no code (declare `doubts` instead)"
    return ""


def architecture_of(method: Method, task: TaskConfig, shape: tuple[int, ...]) -> Architecture:
    """Return the description of a trained method's network. Raise UserError where it cannot be described."""
    if task.network.name in added.NETWORKS:
        raise UserError(
            f"the network '{task.network.name}' is the code of a file of your own, and an exported selector holds no "
            "code; train one of the suite's networks"
        )
    if task.amp != "off":
        raise UserError(
            f"it computes in half precision (amp = {task.amp}), which other programs round differently; train it with "
            "--amp off"
        )
    names = {doubt.part for doubt in method.doubts.values() if doubt.part}
    return Architecture(
        task.network,
        method.task.num_classes,
        shape,
        method.extra_outputs,
        task.channels_last,
        {name: vars(doubt) for name, doubt in method.doubts.items()},
        {name: describe_layers(method.get_submodule(name), name) for name in sorted(names)},
    )


class Member(nn.Module):
    """A network with its heads under the names that they have in the method that trained it."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        channels, height, width = architecture.shape
        self.classes = architecture.num_classes
        self.network = build_network(architecture.network, self.classes, (channels, height, width))
        if architecture.extra_outputs:
            self.network.add_outputs(architecture.extra_outputs, zero=True)
        self.network.set_speed(channels_last=architecture.channels_last, amp="off", compiled=False)
        for name, layers in architecture.parts.items():
            self.add_module(name, build_layers(layers))
        stop_counting_batches(self)
        self.register_load_state_dict_post_hook(forget_counts)  # type: ignore[no-untyped-call]
        self.doubts = {name: Doubt(**doubt) for name, doubt in architecture.doubts.items()}

    def forward(self, images: Tensor) -> Prediction[Tensor]:
        """Return what it says of normalised images."""
        return read_outputs(self, self.network, images, self.classes, self.doubts)


def empty_member(architecture: Architecture) -> Member:
    """Return a network whose weights are still to come. The random numbers of the caller stay as they are."""
    with torch.random.fork_rng(devices=[]):
        return Member(architecture).eval()


def member_of(method: Method, architecture: Architecture) -> Member:
    """Return the network of a trained method, without what only its training needs."""
    member = empty_member(architecture)
    needed = set(member.state_dict())
    member.load_state_dict({name: value for name, value in method.state_dict().items() if name in needed})
    return member
