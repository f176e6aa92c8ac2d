"""Deep ensemble: the mean probability of plain networks trained from different seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from benchmark.interface import Member, Within
from methods._ensembles import Ensemble

FURTHER = 1_000_000
"""Where the seeds of further members begin, far from those that people choose."""


def member_seeds(seed: int, size: int) -> list[int]:
    """Return the seed of the run itself, and further ones that no other ensemble has."""
    return [seed, *(FURTHER + 1000 * seed + index for index in range(1, size))]


class DeepEnsemble(Ensemble):
    title = "deep ensemble: mean probability of networks from different seeds; costs as many trainings"
    reference = "Lakshminarayanan et al., NeurIPS 2017"
    labels = {"Deep ensemble": {}}

    @dataclass(frozen=True)
    class Config:
        size: Annotated[int, Within(2, 1000, "each member is a training of its own")] = 5
        """M, the number of members."""

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        return [Member("cross_entropy", member) for member in member_seeds(seed, config.size)]


METHOD = DeepEnsemble
