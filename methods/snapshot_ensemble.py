"""Snapshot ensemble: the mean probability of one network at the ends of its learning-rate cycles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from benchmark.interface import Member, Within, check
from methods._ensembles import Ensemble


def cycle_ends(num_epochs: int, cycles: int) -> list[int]:
    """Return the epochs after which the rate has fallen to zero."""
    if num_epochs % cycles:
        raise ValueError(f"cycles = {cycles} must divide epochs = {num_epochs}, so that the last one is whole")
    length = num_epochs // cycles
    return list(range(length, num_epochs + 1, length))


class SnapshotEnsemble(Ensemble):
    title = "snapshot ensemble: mean probability of one network at the ends of its cosine cycles"
    reference = "Huang et al., ICLR 2017"
    labels = {"Snapshot ensemble": {}}
    uses_final_weights = False

    @dataclass(frozen=True)
    class Config:
        cycles: Annotated[int, Within(1, 1000, "a prediction is kept of each cycle")] = 5
        """M, the number of cycles of the training."""
        last: Annotated[int, Within(0, 1000, "there are no more cycles")] = 0
        """Only the last so many snapshots are averaged; 0 = all."""
        lr: Annotated[float, Within(0, 10**9, "no training survives such steps")] = 0.0
        """alpha_0, the rate at the start of each cycle; 0 = the task's own."""

        def __post_init__(self) -> None:
            check(0 <= self.last <= self.cycles, f"last must lie between 0 and cycles, got {self.last}")

    @staticmethod
    def members(config: Any, seed: int, num_epochs: int) -> Sequence[Member]:
        ends = cycle_ends(num_epochs, config.cycles)[-config.last :]
        recipe = {"schedule": {"name": "cyclic", "cycles": config.cycles}, "evaluate_at": ends}
        recipe |= {"optimizer": {"lr": config.lr}} if config.lr else {}
        return [Member("cross_entropy", seed, recipe, epoch) for epoch in ends]


METHOD = SnapshotEnsemble
