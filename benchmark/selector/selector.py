"""A selector that was exported, loaded from its folder: images in, classes and decisions out."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.base.errors import UserError, brief
from benchmark.data.devices import device_kind, device_name, has_doubles
from benchmark.selector.files import SELECTOR, Content, Guarantee, read_selector
from benchmark.selector.model import SelectiveModel, build_model

BLOCK = 256
"""Images that are computed at a time."""


def check_device(device: str) -> None:
    """Raise UserError for a device that is not there, or that cannot compute scores in float64."""
    if not has_doubles(torch.device(device_kind(device))):
        raise UserError(f"device '{device}' has no float64, in which scores are computed; use the CPU")


class Selection(NamedTuple):
    """What a selector says of images."""

    classes: NDArray[np.int64]
    """The number of the class of each image, also of those that are not kept."""
    kept: NDArray[np.bool_]
    """Whether the selector stands by it."""


@dataclass(frozen=True, repr=False)
class Selector:
    """A trained network with its score and its threshold. It needs neither the method nor the data that made it."""

    content: Content
    model: SelectiveModel

    @property
    def threshold(self) -> float:
        """Return the confidence from which on an image is kept."""
        return self.content.threshold

    @property
    def guarantee(self) -> Guarantee | None:
        """Return what is promised of the threshold; None where it was changed by hand."""
        return self.content.guarantee

    @property
    def score(self) -> str:
        """Return the name of the score."""
        return self.content.score

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the classes, in the order of their numbers."""
        return self.content.classes

    @classmethod
    def load(cls, folder: str | PathLike[str], device: str = "cpu") -> "Selector":
        """Return the selector in a folder. Executes nothing from it; raises UserError where it is not as exported."""
        path = Path(folder)
        check_device(device)
        content, tensors = read_selector(path)
        try:
            model = build_model(content.network, tensors)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"'{path / SELECTOR}' describes no network ({brief(error)}); export it again") from None
        return cls(content, model.to(device_name(device)))

    def __call__(self, images: Any) -> Selection:
        """Return class and decision of each image."""
        classes, confidence = self.answers(images)
        return Selection(classes, confidence >= self.threshold)

    def confidence(self, images: Any) -> NDArray[np.float64]:
        """Return the confidence of each image, larger where it is kept first."""
        return self.answers(images)[1]

    def answers(self, images: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return class and confidence of each image, computed in blocks."""
        tensor = self.checked(images)
        device = self.model.mean.device
        parts: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            for block in torch.split(tensor, BLOCK):
                reading = self.model.read(block.to(device))
                parts.append((reading.logits.argmax(1), self.model.score(reading)))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0)
        classes, confidence = (torch.cat(each).cpu().numpy() for each in zip(*parts, strict=True))
        return classes, confidence

    def checked(self, images: Any) -> Tensor:
        """Return images as a tensor. Raise UserError unless they have the form that the network was trained with."""
        described = self.model.description
        expected = f"{described.dtype} images ({', '.join(['N', *map(str, described.shape)])})".replace("torch.", "")
        try:
            tensor = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
        except (TypeError, ValueError) as error:
            raise UserError(f"expected {expected}, got {type(images).__name__} ({brief(error)})") from None
        if tensor.dtype != described.dtype or tensor.shape[1:] != described.shape or tensor.ndim != 4:
            got = f"{tensor.dtype} ({', '.join(map(str, tensor.shape))})".replace("torch.", "")
            raise UserError(f"expected {expected}, got {got}")
        return tensor

    def __repr__(self) -> str:
        """Return the score, the threshold and the number of classes."""
        return f"<selector of {len(self.classes)} classes: {self.score} of at least {self.threshold:g}>"
