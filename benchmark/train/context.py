"""Say what a job needs to run besides its description."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmark.data.cache import Folders
from benchmark.jobs.job import Methods
from benchmark.store.read_only import ReadOnlyStore
from benchmark.store.store import Store
from benchmark.train.bound import measure_bound
from benchmark.train.trainer import State, Trainer

Observer = Callable[[Trainer, State], dict[str, float]]
"""Called after each epoch; what it returns is added to the epoch's row of the history. It changes nothing."""


@dataclass(frozen=True)
class Context:
    """What a job needs to run besides its description. It is sent to worker processes."""

    results: Path
    folders: Folders
    methods: Methods
    budget: int | None = None
    """Bytes of images that a job may keep on its device; None = a share of what is free there."""
    jobs_per_device: int = 1
    gpus_per_job: int = 1
    """On the CPU: processes per job."""
    keep_weights: bool = False
    keep_features: bool = False
    keep_trunks: bool = False
    track_bound: bool = False
    """Whether to add the parts of the generalisation bound to the history after each epoch."""
    only_fresh: bool = False
    """Whether to start again what other code, or another torch, has started."""
    awaited: frozenset[Path] = frozenset()
    """Folders of jobs whose final weights another job starts from; the weights are removed when the command ends."""
    base: Path | None = None
    """Where to read results that are not in `results`: an attempt writes to a folder of its own."""
    url: str = ""
    """Where workers on other machines read and write results, if not in `results`."""
    read_only: bool = False
    """Whether another process of the job does all the writing."""

    @property
    def store(self) -> Store:
        return (ReadOnlyStore if self.read_only else Store)(self.results, self.base)

    @property
    def observers(self) -> list[Observer]:
        return [measure_bound] if self.track_bound else []
