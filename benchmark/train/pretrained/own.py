"""Fill in what a task leaves to its pretrained network: the file of weights and its hash, mean, std, image size."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import file_sha256
from benchmark.base.names import unknown_name
from benchmark.config.task import DataConfig, TaskConfig
from benchmark.config.training import NetworkConfig
from benchmark.data.cache import Folders
from benchmark.train.pretrained.hub import DEFAULT, fetched
from benchmark.train.pretrained.weights import check_weights

SIZED = ("folder", "imagenet", "celeba")
"""Sources whose images have the size that a task asks for."""


@dataclass(frozen=True)
class Trained:
    """The images that a network was trained with."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    size: int


def settled(task: TaskConfig, folders: Folders) -> TaskConfig:
    """Return a task with all that its pretrained network says of it; one without such a network as it is."""
    config = task.network
    if not config.weights:
        if config.weights_sha256:
            raise UserError("network.weights_sha256 needs network.weights, the file that it is of")
        return task
    file = fetched(config, folders) if config.weights == DEFAULT else Path(config.weights)
    check_weights(file)
    sha256 = file_sha256(file, folders.cache)
    if config.weights_sha256 not in ("", sha256):
        raise UserError(
            f"network.weights: '{file}' has the SHA-256 {sha256}, and network.weights_sha256 is another; name the file "
            "that is meant, or leave weights_sha256 out"
        )
    network = replace(config, weights=str(file), weights_sha256=sha256)
    return replace(task, network=network, data=with_own_images(task.data, config))


def with_own_images(data: DataConfig, config: NetworkConfig) -> DataConfig:
    """Return the data with what the network was trained with where the task names nothing, or where it is to be so."""
    if not data.image_size and data.source in SIZED:
        data = replace(data, image_size=trained_with(config.name).size)
    if config.normalise == "task" and data.mean:
        return data
    own = trained_with(config.name)
    if data.mean and len(data.mean) != len(own.mean):
        raise UserError(
            f"network.normalise: {config.name} was trained with {len(own.mean)} channels, and the task's images have "
            f'{len(data.mean)}; use normalise = "task"'
        )
    return replace(data, mean=own.mean, std=own.std)


def trained_with(name: str) -> Trained:
    """Return what a library says of the images that its weights were trained with."""
    library, _, own = name.partition(":")
    return {"timm": timm_images, "torchvision": torchvision_images}[library](own)


def timm_images(name: str) -> Trained:
    import timm

    if not timm.is_model(name.partition(".")[0]):
        raise unknown_name(name, timm.list_models(), "timm network")
    known: Any = timm.get_pretrained_cfg(name)
    if known is None:
        raise UserError(f"timm does not say what {name} is trained with; name data.mean, data.std and data.image_size")
    return Trained(tuple(known.mean), tuple(known.std), int(known.input_size[-1]))


def torchvision_images(name: str) -> Trained:
    import torchvision

    if name not in torchvision.models.list_models(module=torchvision.models):
        raise unknown_name(name, torchvision.models.list_models(module=torchvision.models), "torchvision network")
    preset: Any = torchvision.models.get_model_weights(name)["DEFAULT"].transforms()
    return Trained(tuple(preset.mean), tuple(preset.std), int(preset.crop_size[-1]))
