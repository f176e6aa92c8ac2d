"""Seed the random streams: every draw depends on (seed, purpose, epoch, step), and never on the method.

So all methods of one seed see the same split, initialisation, batches and augmentation, and a resumed run draws
the same numbers as an unbroken one.
"""

import hashlib
from typing import Literal

import torch

from benchmark.data.devices import accelerator_kind

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
    "mixing",
    "outlier order",
    "outlier augmentation",
    "batch",
]


def stream_seed(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0, rank: int = 0) -> int:
    """Return the number that seeds one stream. It has 32 bits: torch's CPU generator reads no more."""
    key = f"{seed}/{purpose}/{epoch}/{step}" + (f"/{rank}" if rank else "")
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")


def generator(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0) -> torch.Generator:
    """Return a CPU generator, so that its draws do not depend on the device that trains."""
    return torch.Generator().manual_seed(stream_seed(seed, purpose, epoch, step))


def reseed(seed: int, purpose: Purpose, epoch: int = 0, step: int = 0, rank: int = 0) -> None:
    """Seed torch's default generators, which dropout and initialisers draw from.

    `torch.manual_seed` does the same, but records the whole call stack each time as long as no GPU is in use.
    """
    number = stream_seed(seed, purpose, epoch, step, rank)
    torch.default_generator.manual_seed(number)
    kind = accelerator_kind()
    if kind == "mps" and torch.backends.mps.is_available():
        torch.mps.manual_seed(number)
    elif kind not in ("cpu", "mps") and (module := torch.get_device_module(kind)).is_initialized():
        module.manual_seed_all(number)
