"""Read the stored predictions of a finished run, each when it is first used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from zipfile import BadZipFile

from benchmark.base.files import Damaged
from benchmark.measure.catalogue import NO_CLASSIFIER, NO_FEATURES, Unavailable
from benchmark.measure.prediction import Classifier, Evidence
from benchmark.store.prediction_file import at_epoch
from benchmark.store.store import CLASSIFIER, PREDICTION, PREDICTION_TRAIN, PREDICTION_VAL, Store

Content = TypeVar("Content")


@dataclass(frozen=True)
class Finished:
    """The stored predictions of a finished run."""

    folder: Path
    store: Store
    epoch: int | None = None
    """Read what was stored after so many epochs; None is the end of training."""
    checksums: Mapping[str, str] | None = None
    """SHA-256 by file name; None leaves it to the run's record."""

    @cached_property
    def test(self) -> Evidence:
        return self.read(PREDICTION, "its predictions were not kept")

    @cached_property
    def validation(self) -> Evidence:
        return self.read(
            PREDICTION_VAL, "it needs validation images, and the run has none (trained: data.val = 0; imported: no val)"
        )

    @cached_property
    def train(self) -> Evidence:
        return self.read(PREDICTION_TRAIN, NO_FEATURES)

    @cached_property
    def classifier(self) -> Classifier:
        if self.epoch is not None:
            raise Unavailable(NO_CLASSIFIER)
        checksum = (self.checksums or {}).get(CLASSIFIER)
        return self.opened(lambda: self.store.read_classifier(self.folder, checksum), NO_CLASSIFIER)

    def read(self, name: str, reason: str) -> Evidence:
        name = name if self.epoch is None else at_epoch(name, self.epoch)
        checksum = (self.checksums or {}).get(name)
        return self.opened(lambda: self.store.read_prediction(self.folder, name, checksum), reason)

    def opened(self, read: Callable[[], Content], reason: str) -> Content:
        """Return what was read; raise Unavailable with the reason where there is no file, or where it is damaged."""
        try:
            return read()
        except OSError:
            raise Unavailable(reason) from None
        except (Damaged, BadZipFile, ValueError, EOFError, KeyError):
            raise Unavailable("its predictions are damaged; the command that made them makes them again") from None
