"""Count the jobs of a command before all of them are planned, and refuse too many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from benchmark.base.errors import UserError
from benchmark.base.units import counted
from benchmark.jobs.job import Job

MOST_JOBS = 100_000


class Planned(Protocol):
    """Anything with jobs, such as an entry."""

    @property
    def jobs(self) -> tuple[Job, ...]: ...


P = TypeVar("P", bound=Planned)


@dataclass
class Allowance:
    """The number of jobs that a command may still plan."""

    left: int = MOST_JOBS

    def all_of(self, make: Callable[[Sequence[int]], Sequence[P]], seeds: Sequence[int]) -> Sequence[P]:
        """Return what `make` plans for some seeds. Count the jobs of one seed first, and refuse too many."""
        first = make(seeds[:1])
        of_a_seed = sum(1 + len(job.all_needs) for planned in first for job in planned.jobs)
        if len(seeds) * of_a_seed > self.left:
            raise UserError(
                f"{counted(len(seeds), 'seed')} × {counted(of_a_seed, 'job')}: expected at most "
                f"{self.left:,} more jobs, as a command plans at most {MOST_JOBS:,} over all tasks; "
                "ask for fewer seeds, methods, settings or tasks at a time"
            )
        self.left -= len(seeds) * of_a_seed
        return first if len(seeds) == 1 else make(seeds)
