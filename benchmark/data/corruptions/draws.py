"""Draws of an image: a function of the corruption, its severity, the number of the image and the place of the draw.

There is no generator whose state could depend on what was drawn before. A hash of 32-bit whole numbers, whose products
wrap around on every device alike, mixes the key of the image with the place.
"""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

LEVELS = 1 << 16
"""Draws are whole numbers below this."""


@dataclass(frozen=True)
class Draws:
    """Uniform draws of some images."""

    keys: Tensor
    """(n, 1)"""

    def numbers(self, count: int) -> Tensor:
        """Return (n, count) whole numbers, uniform from 0 to 65535; a hash of 32 bits gives two."""
        places = mixed(torch.arange((count + 1) // 2, device=self.keys.device, dtype=torch.int32))
        words = mixed(places ^ self.keys)
        return torch.cat([words & (LEVELS - 1), shifted(words, 16)], 1)[:, :count]

    def centred(self, count: int) -> Tensor:
        """Return (n, count) whole numbers, uniform from −32768 to 32767."""
        return self.numbers(count) - LEVELS // 2


def keys(stream: str, ids: Tensor) -> Tensor:
    """Return the keys (n, 1) of images with these numbers: all different within a stream, others in another stream."""
    word = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:4], "little", signed=True)
    return mixed(mixed(ids.to(torch.int32)) ^ word)[:, None]


def mixed(numbers: Tensor) -> Tensor:
    """Return a hash of 32-bit numbers ("lowbias32"): each bit depends on all, and different numbers stay different."""
    numbers = numbers ^ shifted(numbers, 16)
    numbers *= 0x7FEB352D
    numbers ^= shifted(numbers, 15)
    numbers *= 0x846CA68B - (1 << 32)
    return numbers.bitwise_xor_(shifted(numbers, 16))


def shifted(numbers: Tensor, bits: int) -> Tensor:
    """Shift 32-bit numbers to the right, and zeros in from the left."""
    return (numbers >> bits).bitwise_and_((1 << (32 - bits)) - 1)
