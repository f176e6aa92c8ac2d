"""Build networks of other libraries, in parts: the body, the last linear layer, and what the library calls that."""

from typing import Any

from torch import nn

from benchmark.base.errors import UserError
from benchmark.base.names import unknown_name
from benchmark.base.units import counted
from benchmark.config.training import NetworkConfig

Parts = tuple[nn.Module, nn.Linear, str]


def torchvision_network(config: NetworkConfig, num_classes: int, channels: int) -> Parts:
    """Build torchvision's network with its initialisation; the feature is the input of its last linear layer."""
    import torchvision

    name = config.name.partition(":")[2]
    if channels != 3:
        raise UserError(f"network torchvision:{name} needs colour images, got {counted(channels, 'channel')}")
    if name not in torchvision.models.list_models(module=torchvision.models):
        raise unknown_name(name, torchvision.models.list_models(module=torchvision.models), "torchvision network")
    body = torchvision.models.get_model(name, weights=None, num_classes=num_classes)
    linear = [(path, layer) for path, layer in body.named_modules() if isinstance(layer, nn.Linear)]
    if not linear or linear[-1][1].out_features != num_classes or getattr(body, "aux_logits", False):
        raise UserError(f"network torchvision:{name} has no single linear classifier; choose another")
    path, head = linear[-1]
    body.set_submodule(path, nn.Identity())
    return body, head, path


def timm_network(config: NetworkConfig, num_classes: int, channels: int) -> Parts:
    """Build timm's network with its initialisation; the feature is its pooled pre-logits."""
    import timm

    name = config.name.partition(":")[2]
    base, _, tag = name.partition(".")
    if tag and timm.is_model(base) and not config.weights:
        raise UserError(
            f"network timm:{name}: '.{tag}' names pretrained weights; load them with network.weights = \"default\", or "
            f"train the same network from scratch as timm:{base}"
        )
    if not timm.is_model(base):
        raise unknown_name(name, timm.list_models(), "timm network")
    if tag and timm.get_pretrained_cfg(name) is None:
        raise unknown_name(name, timm.list_pretrained(f"{base}.*"), "pretrained timm network")
    body: Any = timm.create_model(name, num_classes=num_classes, in_chans=channels)
    head = body.get_classifier()
    if not isinstance(head, nn.Linear):
        raise UserError(f"network timm:{name} has no single linear classifier; choose another")
    path = next(path for path, layer in body.named_modules() if layer is head)
    body.reset_classifier(0)
    return body, head, path


LIBRARIES = {"torchvision": torchvision_network, "timm": timm_network}
