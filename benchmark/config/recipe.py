"""Handle the recipe that all methods of a task share: its fields, how two recipes differ, and how to print one.

A recipe is the plain data that records keep, so that texts about runs come from the runs.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, get_type_hints

from benchmark.base.schema import build, identity
from benchmark.base.units import counted
from benchmark.config.ingredients import AveragingConfig, MixingConfig
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.config.training import AugmentConfig, NetworkConfig, OptimizerConfig, ScheduleConfig

INDIFFERENT = (
    "name",
    "title",
    "methods",
    "reference",
    "coverages",
    "baseline",
    "seeds",
    "model_coverages",
    "checkpoint_seconds",
    "bound",
    "resources",
    "method",
    "evaluate",
    "tune",
    "tune_val",
)
"""The fields of a task that cannot change a result, or only by what a job itself says: its method's settings, its seed,
the images that its trial holds out. Any other field is part of a job's identity, also one that is new."""
INGREDIENT_TABLES = ("averaging", "mixing")
"""Tables of ingredients, which most recipes do not have."""
FIELDS = tuple(field.name for field in fields(TaskConfig) if field.name not in INDIFFERENT)
"""The fields of a task that every method of it shares and that can change a result."""

Differences = dict[str, tuple[Any, Any]]
"""By field: the value in a file, and the value that was used."""


def recipe_of(task: TaskConfig) -> dict[str, Any]:
    return {name: value for name, value in identity(task).items() if name not in INDIFFERENT}


def recipe_differences(stated: Mapping[str, Any], used: Mapping[str, Any]) -> Differences:
    """Return how two recipes differ. Fields that a record leaves out have their neutral value."""
    own = {name: used[name] for name in FIELDS if name in used}
    return differences(NEUTRAL | flatten(stated), NEUTRAL | flatten(own))


def differences(stated: Mapping[str, Any], used: Mapping[str, Any]) -> Differences:
    """Return the fields with different values; None stands for a field that one side does not have."""
    names = dict.fromkeys((*stated, *used))
    return {name: (stated.get(name), used.get(name)) for name in names if stated.get(name) != used.get(name)}


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested tables as one, with names such as optimizer.lr."""
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def neutral_values(config: type, prefix: str = "") -> dict[str, Any]:
    """Return the values that fields of a config have where an identity leaves them out."""
    values: dict[str, Any] = {}
    hints = get_type_hints(config)
    for field in fields(config):
        neutral = field.metadata.get("neutral", MISSING)
        if is_dataclass(hints[field.name]):
            values |= neutral_values(hints[field.name], f"{prefix}{field.name}.")
        elif neutral is not MISSING:
            values[f"{prefix}{field.name}"] = identity(neutral)
    return values


NEUTRAL = {name: value for name, value in neutral_values(TaskConfig).items() if name.partition(".")[0] in FIELDS}


@dataclass(frozen=True)
class Recipe:
    """The fields that are read from a task, or from the identity in a record."""

    data: DataConfig
    network: NetworkConfig
    augment: AugmentConfig
    optimizer: OptimizerConfig
    schedule: ScheduleConfig
    epochs: int
    batch_size: int
    averaging: AveragingConfig = AveragingConfig()
    mixing: MixingConfig = MixingConfig()


def recipe_text(used: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines of a recipe by their titles. Raise UserError for a recipe of another version."""
    known = {field.name: used.get(field.name) for field in fields(Recipe)}
    return lines_of(
        json.dumps({name: value for name, value in known.items() if value or name not in INGREDIENT_TABLES})
    )


@lru_cache(maxsize=1000)  # a page shows thousands of runs, which have few recipes
def lines_of(recipe_json: str) -> dict[str, str]:
    recipe = build(Recipe, json.loads(recipe_json), "recipe")
    return {
        "data": data(recipe),
        "network": network(recipe),
        "epochs": str(recipe.epochs),
        "batch size": str(recipe.batch_size),
        "optimiser": optimiser(recipe),
        "schedule": schedule(recipe),
        "augmentation": augmentation(recipe),
        **{name: settings_text(getattr(recipe, name)) for name in INGREDIENT_TABLES if getattr(recipe, name).is_on},
    }


def settings_text(config: Any) -> str:
    """Return the name of an ingredient, and its settings that are not the default ones."""
    own = [f"{name} {value}" for name, value in identity(config).items() if name != "name"]
    return f"{config.name} ({', '.join(own)})" if own else str(config.name)


def data(recipe: Recipe) -> str:
    """Return the source of the images, and which training labels they have where a file names them."""
    labels = recipe.data.train_labels_sha256
    return f"{recipe.data.source}, training labels {labels[:8]}" if labels else recipe.data.source


def network(recipe: Recipe) -> str:
    """Return the name of the network, and its settings that are not the default ones."""
    used, default = recipe.network, NetworkConfig(recipe.network.name)
    own = {name: value for name, value in vars(used).items() if value != getattr(default, name)}
    if sha256 := own.pop("weights_sha256", ""):
        own["pretrained"] = sha256[:8]
    settings = ", ".join(f"{name} {'-'.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in own.items())
    return f"{used.name} ({settings})" if settings else used.name


def optimiser(recipe: Recipe) -> str:
    used = recipe.optimizer
    momentum = f", momentum {used.momentum:g}" if used.momentum else ""
    sharp = "" if used.sharpness == "none" else f", {used.sharpness} steps (rho {used.used_rho:g})"
    head = f" (head {used.head_lr:g})" if used.head_lr else ""
    return f"{used.name}, learning rate {used.lr:g}{head}{momentum}, weight decay {used.weight_decay:g}{sharp}"


def schedule(recipe: Recipe | TaskConfig) -> str:
    """Return how the learning rate changes: by which factor, or by the name of its schedule."""
    used = recipe.schedule
    step = f"×{used.factor:g} every {counted(used.every, 'epoch')}"
    held = f", from epoch {used.hold_from} held at ×{used.hold_rate:g}" if used.hold_from else ""
    return (step if used.name == "step" else used.name) + held


def augmentation(recipe: Recipe | TaskConfig) -> str:
    """Return the random changes that training images go through."""
    used = recipe.augment
    parts = {
        f"crop (padding {used.crop_padding})": used.crop_padding,
        "random resized crop": used.random_resized_crop,
        "flip": used.flip,
        f"colour jitter {used.color_jitter:g}": used.color_jitter,
        f"noise {used.noise:g}": used.noise,
        f"feature dropout {used.feature_dropout:g}": used.feature_dropout,
    }
    return ", ".join(name for name, on in parts.items() if on) or "none"
