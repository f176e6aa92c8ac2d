"""Show without any data that a device computes what it should, and how fast."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmark.doctor.checks import admit, examine_all, made_with
from benchmark.doctor.examination import Diagnosis, Patient
from benchmark.library.registry import load_methods


@dataclass(frozen=True)
class Examination:
    """The checks of a device: they are made one by one as somebody iterates over them."""

    patient: Patient
    diagnoses: list[Diagnosis] = field(default_factory=list)
    """Of the checks made so far."""

    def __iter__(self) -> Iterator[Diagnosis]:
        for diagnosis in examine_all(self.patient):
            self.diagnoses.append(diagnosis)
            yield diagnosis

    def troubles(self) -> list[Diagnosis]:
        return [diagnosis for diagnosis in self.diagnoses if diagnosis.state == "trouble"]

    def described(self) -> dict[str, Any]:
        """Return all that was found as plain data, with what it was made with."""
        made = made_with(self.patient, begun=self.diagnoses[0].state == "fine")
        return {**made, "checks": [diagnosis.plain() for diagnosis in self.diagnoses]}


def examine_device(device: str = "auto") -> Examination:
    """Make a device ready for its checks, and return them."""
    return Examination(admit(device, load_methods()))
