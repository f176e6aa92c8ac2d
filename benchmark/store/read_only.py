"""The results folder as all ranks but the first see it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.prediction import Evidence
from benchmark.store import Store


class Onlooker(Store):
    """Reads like any other, and leaves all writing to the first rank, which comes to the same results."""

    def write_record(self, folder: Path, record: Mapping[str, Any]) -> None:
        pass

    def write_prediction(self, folder: Path, name: str, evidence: Evidence) -> str:
        return ""

    def write_history(self, folder: Path, rows: Sequence[Mapping[str, float]]) -> str:
        return ""

    def remove_checkpoint(self, folder: Path) -> None:
        pass

    def tidy(self, folder: Path) -> bool:
        return False
