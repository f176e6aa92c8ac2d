"""Named random streams: every draw of the suite is keyed by (seed, purpose, epoch, step), and never by method.

So all methods of one seed see the same split, initialisation, batches and augmentation, and a resumed run draws
what the unbroken one would have drawn.
"""

import hashlib
from typing import Literal

import torch

from benchmark.devices import accelerator_kind

Purpose = Literal[
    "split",
    "initialisation",
    "extra outputs",
    "method state",
    "order",
    "augmentation",
    "model noise",
    "method noise",
    "evaluation noise",
    "hold-out",
]


def stream(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0, rank: int = 0) -> int:
    """The number that seeds one stream. 32 bits: torch's CPU generator reads no more."""
    key = f"{seed}/{purpose}/{epoch}/{step}" + (f"/{rank}" if rank else "")
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")


def generator(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0) -> torch.Generator:
    """A CPU generator: what it draws does not depend on the device that trains."""
    return torch.Generator().manual_seed(stream(seed, purpose, epoch, step))


def reseed(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0, rank: int = 0) -> None:
    """Point torch's default generators, which dropout and initialisers draw from, at a stream.

    `torch.manual_seed` does the same, but notes the whole call stack each time as long as no GPU is in use.
    """
    number = stream(seed, purpose, epoch, step, rank)
    torch.default_generator.manual_seed(number)
    kind = accelerator_kind()
    if kind == "mps":
        if torch.backends.mps.is_available():
            torch.mps.manual_seed(number)
    elif kind != "cpu" and (module := torch.get_device_module(kind)).is_initialized():
        module.manual_seed_all(number)
