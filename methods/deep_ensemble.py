"""Deep ensemble: the mean probability of plain networks trained from different seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.interface import Member
from benchmark.schema import check
from methods._ensembles import Ensemble

FURTHER = 1_000_000
"""Where the seeds of further members begin, far from those that people choose."""


def member_seeds(seed: int, size: int) -> list[int]:
    """The run of the same seed and further ones that no other ensemble has."""
    return [seed, *(FURTHER + 1000 * seed + index for index in range(1, size))]


class DeepEnsemble(Ensemble):
    title = "deep ensemble: mean probability of networks from different seeds; costs as many trainings"
    reference = "Lakshminarayanan et al., NeurIPS 2017"
    labels = {"Deep ensemble": {}}

    @dataclass(frozen=True)
    class Config:
        size: int = 5
        """M, the number of members."""

        def __post_init__(self) -> None:
            check(2 <= self.size <= 1000, f"size must lie between 2 and 1000, got {self.size}")

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        return [Member("cross_entropy", member) for member in member_seeds(seed, config.size)]


METHOD = DeepEnsemble
