"""Store the predictions of an evaluation set part by part: a job that is killed goes on with the next one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmark.base.files import Damaged
from benchmark.data.evaluation.parts import Part
from benchmark.measure.prediction import Evidence
from benchmark.store.store import PARTS, Store, of_part

Predict = Callable[[int, Part], Evidence]
"""Predicts a part, given its number and itself."""


@dataclass
class PartFiles:
    """The files of the parts that a job has predicted, with their checksums."""

    store: Store
    folder: Path
    checksums: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with suppress(Damaged):
            self.checksums |= (self.store.read_json(self.folder / PARTS) or {}).get("parts", {})

    def all_of(self, parts: Sequence[Part], predict: Predict) -> Iterator[Evidence]:
        """Yield the prediction of each part: what is stored already, or what `predict` returns, which is stored."""
        for index, part in enumerate(parts):
            yield self.read(of_part(part.name)) or self.write(of_part(part.name), predict(index, part))

    def read(self, name: str) -> Evidence | None:
        """Return a prediction that is there and whole."""
        if name in self.checksums:
            with suppress(Damaged, FileNotFoundError):
                return self.store.read_prediction(self.folder, name, self.checksums[name])
        return None

    def write(self, name: str, evidence: Evidence) -> Evidence:
        self.checksums[name] = self.store.write_prediction(self.folder, name, evidence)
        self.store.make_lasting(self.folder, [name])
        self.store.replace_json(self.folder / PARTS, {"parts": self.checksums})
        return evidence
