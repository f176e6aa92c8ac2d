"""Read files of weights, and put them into a network. A file may hold tensors alone: nothing in it is executed."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmark.base.errors import UserError, brief
from benchmark.base.units import counted
from benchmark.config.training import NetworkConfig

SAFETENSORS = ".safetensors"
SUFFIXES = (SAFETENSORS, ".pth", ".pt", ".bin")
WRAPPERS = ("state_dict", "model")
"""Under these names checkpoints of training scripts keep the tensors."""
PARALLEL = "module."
"""Stands before every name where several GPUs trained the network."""
COUNTS = "num_batches_tracked"
SHOWN = 3
Tensors = Mapping[str, Tensor]


def read_weights(config: NetworkConfig) -> Tensors:
    """Return the tensors of a network's file by name. Raise ValueError where it is not what its jobs were planned with.

    They are kept for the next job.
    """
    path = Path(config.weights)
    status = path.stat()
    sha256, tensors = read_version(path, status.st_size, status.st_mtime_ns)
    if sha256 != config.weights_sha256:
        raise ValueError(f"'{path}' has changed since this job was planned; run the command again")
    return tensors


@lru_cache(maxsize=1)
def read_version(path: Path, size: int, date: int) -> tuple[str, Tensors]:
    """Return the hash of a file and its tensors, for each version of the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), read_tensors(path)


def check_weights(path: Path) -> None:
    """Raise UserError unless a path is that of a file that can be one of weights."""
    if not path.is_file():
        raise UserError(f"network.weights: '{path}' is not a file; give one of tensors, or 'default'")
    if path.suffix not in SUFFIXES:
        raise UserError(f"network.weights: expected a file of tensors ({', '.join(SUFFIXES)}), got '{path.name}'")


def read_tensors(path: Path) -> Tensors:
    """Return the tensors in a file by name. Raise UserError for a file that has anything else."""
    try:
        found = read_safetensors(path) if path.suffix == SAFETENSORS else read_pth(path)
    except Exception as error:
        raise UserError(
            f"network.weights: '{path}' cannot be read as tensors alone ({brief(error)}); code in a file is never "
            f"executed: save the network's state_dict(), best as {SAFETENSORS}"
        ) from None
    found = next((found[name] for name in WRAPPERS if isinstance(found.get(name), dict)), found)
    odd = [name for name, value in found.items() if not isinstance(value, Tensor)]
    if odd or not found:
        problem = f"'{odd[0]}' is none" if odd else "there are none"
        raise UserError(f"network.weights: '{path}' must hold tensors by name, and {problem}; save a state_dict()")
    if all(name.startswith(PARALLEL) for name in found):
        found = {name.removeprefix(PARALLEL): tensor for name, tensor in found.items()}
    return {name: tensor for name, tensor in found.items() if not name.endswith(COUNTS)}


def read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(path)


def read_pth(path: Path) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong with a file is said once, in one line
        found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict):
        raise TypeError(f"it holds a {type(found).__name__}")
    return found


def load_weights(body: nn.Module, head: nn.Linear, head_name: str, config: NetworkConfig) -> None:
    """Put the weights of a network's file into it; its head keeps its own where the file has another one."""
    given = read_weights(config)
    check_fit(body, head, head_name, given, config)
    body.load_state_dict({name: given[name] for name in own_names(body)}, strict=False)
    if has_head(head, head_name, given):
        head.load_state_dict({name: given[f"{head_name}.{name}"] for name in head.state_dict()})


def has_head(head: nn.Linear, head_name: str, given: Tensors) -> bool:
    """Tell whether a file has the weights of just this last layer."""
    wanted = {f"{head_name}.{name}": tensor.shape for name, tensor in head.state_dict().items()}
    return all(name in given and given[name].shape == shape for name, shape in wanted.items())


def own_names(body: nn.Module) -> list[str]:
    return [name for name in body.state_dict() if not name.endswith(COUNTS)]


def check_fit(body: nn.Module, head: nn.Linear, head_name: str, given: Tensors, config: NetworkConfig) -> None:
    """Raise UserError unless a file has every tensor of a body, in its shape, and beyond it those of a head alone."""
    own, shapes = set(own_names(body)), {name: tensor.shape for name, tensor in body.state_dict().items()}
    of_head = {f"{head_name}.weight", f"{head_name}.bias"}
    missing = [name for name in own_names(body) if name not in given]
    extra = [name for name in given if name not in own | of_head]
    reshaped = [
        f"{name} {form(given[name])} and not {form(shapes[name])}"
        for name in own_names(body)
        if name in given and given[name].shape != shapes[name]
    ]
    kinds = {"missing": missing, "not of this network": extra, "of another shape": reshaped}
    if any(kinds.values()):
        found = "; ".join(f"{len(names):,} {what} ({few(names)})" for what, names in kinds.items() if names)
        raise UserError(
            f"network.weights: '{config.weights}' does not fit {config.name}, whose body has "
            f"{counted(len(own), 'tensor')}: {found}"
        )


def few(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


def form(tensor: Tensor | torch.Size) -> str:
    shape = tensor.shape if isinstance(tensor, Tensor) else tensor
    return "×".join(map(str, shape)) or "a number"


def remark_on_head(head: nn.Linear, head_name: str, config: NetworkConfig) -> str:
    """Return what a reader should know of the last layer: where that of a file is not the task's, it begins anew."""
    given = read_weights(config)
    if has_head(head, head_name, given):
        return ""
    theirs = given.get(f"{head_name}.weight")
    has = "no last layer" if theirs is None else f"a last layer for {counted(len(theirs), 'class', 'classes')}"
    return f"the weights of {config.name} have {has}; that for {head.out_features:,} begins at random"
