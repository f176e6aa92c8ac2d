"""Fetch the weights that a library offers for a network, once: from then on they are a file of the cache."""

import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from benchmark.base.errors import UserError, brief
from benchmark.base.files import write_atomically
from benchmark.config.training import NetworkConfig
from benchmark.data.cache import Folders

DEFAULT = "default"
ANSWER_SECONDS = 10.0
"""How long to wait for an answer before a machine counts as offline."""


def fetched(config: NetworkConfig, folders: Folders) -> Path:
    """Return the file with the weights of a library's hub; download them where they are not in the cache."""
    file = folders.cache / "weights" / f"{config.name.replace(':', '-')}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            write_atomically(file, downloaded(config.name))
    return file


def downloaded(name: str) -> bytes:
    """Return the weights of a library's hub as the content of a file."""
    from safetensors.torch import save

    library, _, own = name.partition(":")
    url = {"timm": timm_url, "torchvision": torchvision_url}[library](own)
    try:
        with short_timeouts():
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=ANSWER_SECONDS).close()
            body = {"timm": timm_trained, "torchvision": torchvision_trained}[library](own)
    except Exception as error:
        raise UserError(
            f"network.weights: the weights of {name} could not be fetched from {url} ({brief(error)}); where there is "
            'no connection, name a file: network.weights = "FILE.safetensors"'
        ) from None
    return save({key: tensor.contiguous().clone() for key, tensor in body.state_dict().items()})


@contextmanager
def short_timeouts() -> Iterator[None]:
    """Give up soon where a server does not answer."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(ANSWER_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def timm_url(name: str) -> str:
    import timm

    known: Any = timm.get_pretrained_cfg(name)
    if known is None or not known.has_weights:
        raise UserError(f"network.weights: timm has no weights of {name}; name a file")
    return f"https://huggingface.co/{known.hf_hub_id}" if known.hf_hub_id else str(known.url)


def timm_trained(name: str) -> Any:
    import timm

    return timm.create_model(name, pretrained=True)


def torchvision_url(name: str) -> str:
    import torchvision

    return str(torchvision.models.get_model_weights(name)["DEFAULT"].url)


def torchvision_trained(name: str) -> Any:
    import torchvision

    return torchvision.models.get_model(name, weights="DEFAULT")
