"""The recipe that all methods of a task share: its fields, how two of them differ, and how people read one.

A recipe is the plain data that records keep, so that what is said of runs comes from the runs.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from benchmark.config import AugmentConfig, DataConfig, NetworkConfig, OptimizerConfig, ScheduleConfig, TaskConfig
from benchmark.schema import build, identity
from benchmark.units import counted

FIELDS = (
    "data",
    "network",
    "augment",
    "optimizer",
    "schedule",
    "epochs",
    "batch_size",
    "eval_batch_size",
    "threads",
    "channels_last",
    "amp",
    "compile",
    "tf32",
    "sync_batchnorm",
    "checkpoint",
    "evaluate_at",
)
"""The fields of a task that every method of it shares and that can change a result."""

Differences = dict[str, tuple[Any, Any]]
"""By field: what a file says, and what was used."""


def recipe_of(task: TaskConfig) -> dict[str, Any]:
    return {name: value for name, value in identity(task).items() if name in FIELDS}


def recipe_differences(said: Mapping[str, Any], used: Mapping[str, Any]) -> Differences:
    """Fields that a record leaves out have their neutral value."""
    return differences(NEUTRAL | flat(said), NEUTRAL | flat({name: used[name] for name in FIELDS if name in used}))


def differences(said: Mapping[str, Any], used: Mapping[str, Any]) -> Differences:
    """None stands for a field that one of them does not know."""
    names = dict.fromkeys((*said, *used))
    return {name: (said.get(name), used.get(name)) for name in names if said.get(name) != used.get(name)}


def flat(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Tables within tables → one, with names such as optimizer.lr."""
    found: dict[str, Any] = {}
    for name, value in tables.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def neutral_values(config: type, prefix: str = "") -> dict[str, Any]:
    """What the fields of a config mean where they are left out of an identity."""
    found: dict[str, Any] = {}
    hints = get_type_hints(config)
    for field in fields(config):
        neutral = field.metadata.get("neutral", MISSING)
        if is_dataclass(hints[field.name]):
            found |= neutral_values(hints[field.name], f"{prefix}{field.name}.")
        elif neutral is not MISSING:
            found[f"{prefix}{field.name}"] = identity(neutral)
    return found


NEUTRAL = {name: value for name, value in neutral_values(TaskConfig).items() if name.partition(".")[0] in FIELDS}


@dataclass(frozen=True)
class Recipe:
    """What is read of a task, or of the identity that a record keeps."""

    data: DataConfig
    network: NetworkConfig
    augment: AugmentConfig
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    epochs: int
    batch_size: int


def recipe_text(used: Mapping[str, Any]) -> dict[str, str]:
    """The lines of a recipe by what they are called. Raises UserError for one of another version."""
    recipe = build(Recipe, {field.name: used.get(field.name) for field in fields(Recipe)}, "recipe")
    return {
        "data": recipe.data.source,
        "network": network(recipe),
        "epochs": str(recipe.epochs),
        "batch size": str(recipe.batch_size),
        "optimiser": optimiser(recipe),
        "schedule": schedule(recipe),
        "augmentation": augmentation(recipe),
    }


def network(recipe: Recipe) -> str:
    used, default = recipe.network, NetworkConfig(recipe.network.name)
    own = {name: value for name, value in vars(used).items() if value != getattr(default, name)}
    settings = ", ".join(f"{name} {'-'.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in own.items())
    return f"{used.name} ({settings})" if settings else used.name


def optimiser(recipe: Recipe) -> str:
    used = recipe.optimizer
    momentum = f", momentum {used.momentum:g}" if used.momentum else ""
    return f"{used.name}, learning rate {used.lr:g}{momentum}, weight decay {used.weight_decay:g}"


def schedule(recipe: Recipe | TaskConfig) -> str:
    step = f"×{recipe.schedule.factor:g} every {counted(recipe.schedule.every, 'epoch')}"
    return step if recipe.schedule.name == "step" else recipe.schedule.name


def augmentation(recipe: Recipe | TaskConfig) -> str:
    used = recipe.augment
    parts = {
        f"crop (padding {used.crop_padding})": used.crop_padding,
        "random resized crop": used.random_resized_crop,
        "flip": used.flip,
        f"colour jitter {used.color_jitter:g}": used.color_jitter,
    }
    return ", ".join(name for name, on in parts.items() if on) or "none"
