"""Describe small heads as lists of known layers, and build them again. A description names no code."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from benchmark.base.errors import UserError
from benchmark.interface import Divide

Plain = Mapping[str, Any]
KNOWN: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "Linear": (nn.Linear, ("in_features", "out_features", "bias")),
    "BatchNorm1d": (nn.BatchNorm1d, ("num_features", "eps", "affine")),
    "LayerNorm": (nn.LayerNorm, ("normalized_shape", "eps", "elementwise_affine")),
    "ReLU": (nn.ReLU, ()),
    "GELU": (nn.GELU, ("approximate",)),
    "Sigmoid": (nn.Sigmoid, ()),
    "Tanh": (nn.Tanh, ()),
    "Dropout": (nn.Dropout, ("p",)),
    "Identity": (nn.Identity, ()),
    "Divide": (Divide, ("by",)),
}
"""By name: the layer, and its arguments, which are attributes of the same names."""


def describe_layers(part: nn.Module, name: str) -> list[Plain]:
    """Return the layers of a head, each with its arguments. Raise UserError for one that is not known."""
    layers = list(part) if type(part) is nn.Sequential else [part]
    return [describe_layer(layer, name) for layer in layers]


def describe_layer(layer: nn.Module, name: str) -> Plain:
    kind = type(layer).__name__
    known, arguments = KNOWN.get(kind, (nn.Module, ()))
    if type(layer) is not known:
        raise UserError(
            f"its part '{name}' has a layer {kind}, which cannot be exported; known are {', '.join(KNOWN)}, one after "
            "the other"
        )
    values = {argument: getattr(layer, argument) for argument in arguments}
    values |= {"bias": values["bias"] is not None} if "bias" in values else {}
    return {"layer": kind, **{key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}}


def build_layers(described: Sequence[Plain]) -> nn.Module:
    """Build a head from its description."""
    built = []
    for each in described:
        arguments = dict(each)
        build, names = KNOWN[arguments.pop("layer")]
        if set(arguments) != set(names):
            raise KeyError(f"expected the arguments {', '.join(names)}")
        built.append(build(**arguments))
    return built[0] if len(built) == 1 else nn.Sequential(*built)
