"""Read the stored predictions of a finished run, each when it is first used."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

from benchmark.base.files import Damaged
from benchmark.measure.catalogue import NO_FEATURES, Unavailable
from benchmark.measure.prediction import Evidence
from benchmark.store.store import PREDICTION, PREDICTION_TRAIN, PREDICTION_VAL, Store, at_epoch


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

    def read(self, name: str, reason: str) -> Evidence:
        name = name if self.epoch is None else at_epoch(name, self.epoch)
        try:
            return self.store.read_prediction(self.folder, name, (self.checksums or {}).get(name))
        except OSError:
            raise Unavailable(reason) from None
        except (Damaged, BadZipFile, ValueError, EOFError):
            raise Unavailable("its predictions are damaged; the command that made them makes them again") from None
