"""A results folder that is only read: for all processes of a job but the first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.measure.prediction import Evidence
from benchmark.store.store import Store


class ReadOnlyStore(Store):
    """A results folder that is only read. The first process of the job has the same results and writes them."""

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
