"""Find the stages of a network, and freeze what comes before those that are trained."""

import re
from collections import defaultdict

from torch import nn

from benchmark.base.errors import UserError
from benchmark.base.units import counted

NUMBERED = re.compile(r"(.*?)[0-9]+")


def freeze(body: nn.Module, train: str, name: str) -> tuple[str, ...]:
    """Freeze what `network.train` does not name; return the frozen modules by name, none of them within another."""
    if train == "all":
        return ()
    if train == "head":
        body.requires_grad_(False)
        return ("",)
    first = first_trained(body, int(train.partition(":")[2]), train, name)
    frozen: list[str] = []
    for path, module in body.named_modules():
        if path == first:
            break
        around = not path or first.startswith(f"{path}.")
        for parameter in module.parameters(recurse=not around):
            parameter.requires_grad_(False)
        if not around and not any(path.startswith(f"{each}.") for each in frozen):
            frozen.append(path)
    return tuple(frozen)


def first_trained(body: nn.Module, count: int, train: str, name: str) -> str:
    """Return the first of the last `count` stages. What a network lists behind it is trained too."""
    found = stages(body)
    if count > len(found):
        has = counted(len(found), "stage") + (f" ({', '.join(found)})" if found else "")
        raise UserError(f"network.train = {train}, but {name} has {has}; name fewer, or train = all")
    return found[-count]


def stages(body: nn.Module) -> list[str]:
    """Return the stages of a network: its numbered parts (layer1, layer2; blocks.0, blocks.1) with the most tensors."""
    groups: dict[str, list[str]] = defaultdict(list)
    tensors: dict[str, int] = defaultdict(int)
    for path, module in body.named_modules():
        match, count = NUMBERED.fullmatch(path), len(list(module.parameters()))
        if match and count:
            groups[match[1]].append(path)
            tensors[match[1]] += count
    several = [prefix for prefix, paths in groups.items() if len(paths) > 1]
    return groups[max(several, key=lambda prefix: tensors[prefix])] if several else []
