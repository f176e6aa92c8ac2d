"""Check a network: what methods, the trainer and checkpoints ask of it."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.base.errors import brief
from benchmark.base.schema import build
from benchmark.check.findings import Check, Finding, make_checks, require
from benchmark.check.harness import BATCH, NUM_CLASSES, differing, images
from benchmark.config.training import NetworkConfig
from benchmark.data import streams
from benchmark.train.networks import Network, build_network

SHAPES = ((3, 32, 32), (1, 28, 28), (1, 8, 8), (3, 64, 64), (3, 224, 224))
WIDTHS = ((), (8, 16))
"""What is tried until a network can be built; of the widths, only those that somebody sets, if so."""
EXTRA = 2


@dataclass(frozen=True)
class NetworkCandidate:
    """A network with settings and images that it can be built for."""

    config: NetworkConfig
    shape: tuple[int, int, int]

    def make(self, device: str = "cpu") -> Network:
        with torch.device(device):
            streams.reseed(0, "initialisation")
            return build_network(self.config, NUM_CLASSES, self.shape)

    def images(self, start: int = 0) -> Tensor:
        return images(start, BATCH, self.shape)

    def trained(self, steps: int = 3) -> Network:
        """Return the network after a few steps of plain cross-entropy."""
        network = self.make().train()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
        for index in range(steps):
            streams.reseed(0, "model noise", index)
            optimizer.zero_grad()
            self.loss(network, index).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return network

    def loss(self, network: Network, start: int = 0) -> Tensor:
        logits, _ = network(self.images(start))
        return nn.functional.nll_loss(logits.log_softmax(1), torch.arange(BATCH) % NUM_CLASSES)

    def predicted(self, network: Network) -> tuple[Tensor, Tensor]:
        """Return logits and features in evaluation mode."""
        with torch.no_grad():
            logits, features = network.eval()(self.images())
        return logits, features


def candidates_of(name: str, settings: Mapping[str, Any]) -> list[NetworkCandidate]:
    """Return a network with all settings and images that are tried. Raise UserError for settings that there are not."""
    widths = [settings["widths"]] if "widths" in settings else WIDTHS
    configs = [build(NetworkConfig, {"name": name, **settings, "widths": each}, "--set network") for each in widths]
    return [NetworkCandidate(config, shape) for config, shape in product(configs, SHAPES)]


def why_not(candidate: NetworkCandidate) -> str:
    """Return why a network cannot be built, or not be used; empty where it can."""
    try:
        candidate.make("meta")(torch.empty(2, *candidate.shape, device="meta"))
    except Exception as error:
        return brief(error)
    return ""


def shapes_of_outputs(candidate: NetworkCandidate) -> None:
    network = candidate.make()
    logits, features = candidate.predicted(network)
    require(logits.shape == (BATCH, NUM_CLASSES), f"logits have shape {tuple(logits.shape)}; expected (images, K)")
    expected = (BATCH, network.feature_dim)
    require(features.shape == expected, f"features have shape {tuple(features.shape)}; expected {expected}")
    require(bool(torch.isfinite(logits).all()), "logits are not finite")


def each_image_for_itself(candidate: NetworkCandidate) -> None:
    network = candidate.trained().eval()
    with torch.no_grad():
        whole = network(candidate.images())[0]
        parts = torch.cat([network(part)[0] for part in torch.split(candidate.images(), 5)])
    require(torch.allclose(whole, parts, atol=1e-5, rtol=1e-4), "an image's logits depend on its neighbours")


def reaches_all_weights(candidate: NetworkCandidate) -> None:
    network = candidate.make().train()
    loss = candidate.loss(network)
    require(bool(torch.isfinite(loss)), f"the loss of a batch is {loss.detach()}")
    loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            require(parameter.grad is not None, f"no gradient reaches {name}")
            require(bool(torch.isfinite(parameter.grad).all()), f"the gradient of {name} is not finite")  # type: ignore[arg-type]


def determinism(candidate: NetworkCandidate) -> None:
    changed = differing(candidate.make().state_dict(), candidate.make().state_dict())
    require(not changed, f"two networks of one seed differ in {', '.join(changed[:3])}; draw from torch's generator")
    changed = differing(candidate.trained().state_dict(), candidate.trained().state_dict())
    require(not changed, f"after equal steps, {', '.join(changed[:3])} differ; draw from torch's generator")


def whole_state(candidate: NetworkCandidate) -> None:
    first, second = candidate.trained(), candidate.make()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for other, what in ((second, "loading its state"), (copy.deepcopy(first), "copying it")):
        same = torch.equal(candidate.predicted(first)[0], candidate.predicted(other)[0])
        require(same, f"after {what} it predicts something else; keep all state in parameters and buffers")


def extra_outputs(candidate: NetworkCandidate) -> None:
    network = candidate.make()
    plain, _ = candidate.predicted(network)
    network.add_outputs(EXTRA, zero=False)
    extended, _ = candidate.predicted(network)
    expected = (BATCH, NUM_CLASSES + EXTRA)
    require(extended.shape == expected, f"with {EXTRA} more outputs it has shape {tuple(extended.shape)}")
    require(torch.equal(extended[:, :NUM_CLASSES], plain), "more outputs change the logits of the classes")


def channels_last(candidate: NetworkCandidate) -> None:
    network = candidate.make()
    plain, _ = candidate.predicted(network)
    network.set_speed(channels_last=True, amp="off", compiled=False)
    found, _ = candidate.predicted(network)
    require(torch.allclose(found, plain, atol=1e-4, rtol=1e-3), "it computes something else with channels last")


CHECKS: dict[str, Check[NetworkCandidate]] = {
    "K logits and the features of each image": shapes_of_outputs,
    "predicts each image for itself": each_image_for_itself,
    "a step reaches the whole network": reaches_all_weights,
    "equal seeds make equal networks": determinism,
    "state_dict is the whole state": whole_state,
    "takes outputs beyond the K classes": extra_outputs,
    "computes the same with channels last": channels_last,
}


def network_findings(name: str, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Make every check of a network, with the first settings and images that it can be built for."""
    first = "can be built without memory (meta device)"
    candidates = candidates_of(name, settings)
    candidate = next((each for each in candidates if not why_not(each)), None)
    if candidate is None:
        yield Finding(first, False, why_not(candidates[0]))
        return
    weights = sum(parameter.numel() for parameter in candidate.make("meta").parameters())
    yield Finding(first, True, f"{weights:,} weights for images of {'×'.join(map(str, candidate.shape))}")
    yield from make_checks(CHECKS, candidate)
