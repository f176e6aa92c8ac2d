"""Describe a job: one method trained on one task with one seed. Its id hashes all that can change its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from benchmark.base import added
from benchmark.base.schema import identity
from benchmark.config.evaluation import EvaluationConfig
from benchmark.config.ingredients import AveragingConfig
from benchmark.config.recipe import recipe_of
from benchmark.config.task import TaskConfig
from benchmark.store.record import job_id
from benchmark.store.store import PREDICTION, TRUNK, folder_of

if TYPE_CHECKING:
    from benchmark.interface import Contestant

PREDICTION_HELD_OUT = "prediction-held-out.npz"
INDIFFERENT = (
    "seed",
    "data_seed",
    "until",
    "warmup_epochs",
    "stage_epochs",
    "takes_over",
    "bytes_sha256",
    "label",
    "code",
    "branches",
    "snapshots",
    "averages",
)
"""The fields of a job that are no part of its identity. Seeds and `until` are in its folder's name, beside the id.
`warmup_epochs`, `stage_epochs` and `takes_over` follow from its method and settings. The rest changes no result."""
ALWAYS = ("method", "config", "data_sha256")
"""Parts of an identity that are there even if they are empty. Others leave ids as they were before they existed."""


class Methods(Protocol):
    """What the core calls of the collection of methods; it never imports a method."""

    def load(self) -> None: ...
    def names(self) -> list[str]: ...
    def get(self, name: str) -> "type[Contestant]": ...
    def source_hash(self, name: str) -> str | None: ...
    def bytes_hash(self, name: str) -> str | None: ...
    def code_hash(self, name: str) -> str: ...


def own_parts(task: TaskConfig, methods: Methods) -> dict[str, str]:
    """Return the hashes of what users' files do that define the network or the source of a task."""
    return {kind: methods.source_hash(owner) or "" for kind, owner in part_owners(task).items()}


def part_owners(task: TaskConfig) -> dict[str, str]:
    """Return which users' files define the network or the source of a task, each by its name among the methods."""
    used = {"network": added.NETWORKS.get(task.network.name), "source": added.SOURCES.get(task.data.source)}
    return {kind: part.owner for kind, part in used.items() if part is not None}


@dataclass(frozen=True)
class Evaluated:
    """The evaluation set that a job predicts with the network of another."""

    name: str
    config: EvaluationConfig
    sha256: str
    """Of its images and labels."""
    num_images: int = 0
    """As far as it is known; no part of the identity, which the hash covers."""

    def identity(self) -> dict[str, Any]:
        return {**identity(self.config), "sha256": self.sha256}

    @property
    def title(self) -> str:
        """Return its name, with its kind where that does not say it."""
        return self.name if self.name == self.config.kind else f"{self.name} ({self.config.kind})"


@dataclass(frozen=True)
class Job:
    """One method, with its settings, trained on one task with one seed."""

    task: TaskConfig
    method: str
    """The method's file name."""
    config: dict[str, Any]
    """The method's resolved settings as plain values: a job travels to processes that have not loaded its method."""
    data_sha256: str
    source_sha256: str | None
    """Hash of what a plugin does, whatever its comments and layout; None for the methods of the suite."""
    seed: int
    warmup_epochs: int = 0
    """Epochs that the method's declared warm-up trains in its place; follows from `config`."""
    stage_epochs: int = 0
    """Epochs of a second stage, after all of the task's; the whole training before it counts as its warm-up."""
    max_steps: int = 0
    """The number of batches to train and predict in each phase, to try a configuration; 0 = all."""
    needs: "tuple[Job, ...]" = ()
    """Jobs that must be done first: those that a derived method combines, or the training that a method takes over."""
    takes_over: bool = False
    """Whether it starts from the final network of the job it needs, or from the average of it that its task names, and
    trains nothing."""
    held_out: float = 0.0
    """In a trial of `tune`, the share of the training images that replaces the test images, drawn by the seed.
    They are used for nothing else, and the test images for nothing."""
    data_seed: int | None = None
    """The seed that splits the data, if not the job's own: members of an ensemble use the ensemble's split."""
    own_parts: Mapping[str, str] = field(default_factory=dict)
    """Hashes of what users' files do that define its network or its source of images; empty for those of the suite."""
    outliers_sha256: str = ""
    """Hash of the images of another task that it trains on; empty where its method needs none."""
    evaluates: Evaluated | None = None
    """What it predicts with the final network of the first job that it needs. It trains nothing."""
    bytes_sha256: str | None = None
    """Hash of a plugin's file, which older results go by (see `earlier_ids.py`); no part of its identity."""
    label: str = ""
    """What people call it; no part of its identity."""
    code: str = ""
    """Hash of the code that computes it; no part of its identity, so that a changed comment costs no training."""
    trunk: "Job | None" = None
    """The training whose first `warmup_epochs` epochs are this job's warm-up, to the bit."""
    branches: bool = False
    """Whether it starts from the snapshot that its trunk saves after the warm-up."""
    snapshots: tuple[int, ...] = ()
    """The numbers of epochs after which it saves its state, for others to branch off."""
    averages: tuple[AveragingConfig, ...] = ()
    """Averages of its weights that it takes beside its training, for jobs that take it over."""
    until: int = 0
    """The number of epochs after which it stops, with nothing but snapshots as its result; 0 = all epochs."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change the result; the id is its hash."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in INDIFFERENT}
        task, trunk = own.pop("task"), own.pop("trunk")
        own["needs"] = sorted({need.id for need in self.needs})
        own["warmup"] = trunk.config if trunk else {}
        own["evaluates"] = self.evaluates.identity() if self.evaluates else {}
        return recipe_of(task) | {name: value for name, value in own.items() if value or name in ALWAYS}

    @property
    def all_needs(self) -> "tuple[Job, ...]":
        """Return the jobs that must be done first, each after those that it needs itself."""
        return tuple(job for need in self.needs for job in (*need.all_needs, need))

    @property
    def epochs(self) -> int:
        """Return how many epochs it trains itself."""
        return 0 if self.needs else self.last_epoch - (self.warmup_epochs if self.branches else 0)

    @property
    def last_epoch(self) -> int:
        return self.until or self.task.epochs + self.stage_epochs

    @property
    def split_seed(self) -> int:
        return self.seed if self.data_seed is None else self.data_seed

    @property
    def measured(self) -> str:
        """Return the file name of the prediction that its record measures."""
        return PREDICTION_HELD_OUT if self.held_out else PREDICTION

    @cached_property
    def id(self) -> str:
        return job_id(self.identity())

    @property
    def results_name(self) -> str:
        """Return the name under which its results lie: that of its task, or of an evaluation set of it."""
        return results_name(self.task.name, self.evaluates)

    @property
    def name(self) -> str:
        """Return its name in messages."""
        return f"{self.results_name} {self.label} seed {self.seed}"

    @cached_property
    def folder(self) -> Path:
        """Return where its files lie below the results folder."""
        own = folder_of(self.results_name, self.method, self.id, self.seed)
        own = own if self.split_seed == self.seed else own.with_name(f"{own.name}-data-{self.split_seed}")
        return own.with_name(own.name + TRUNK) if self.until else own

    @property
    def snapshot_folder(self) -> Path:
        """Return where its snapshots lie."""
        return self.folder if self.until else self.folder.with_name(self.folder.name + TRUNK)

    @property
    def branching_point(self) -> tuple[Path, int] | None:
        """Return the snapshot that it begins with, by folder and epoch; None where it trains from the start."""
        return (self.trunk.snapshot_folder, self.warmup_epochs) if self.branches and self.trunk else None

    @property
    def weights_folders(self) -> tuple[Path, ...]:
        """Return where its final weights may be: with it, or with the training that it takes over."""
        return (self.folder, *(need.folder for need in self.needs if self.takes_over))


def results_name(task: str, evaluated: Evaluated | None) -> str:
    """Return the name under which results of a task lie, or those of an evaluation set of it."""
    return f"{task}-{evaluated.name}" if evaluated else task
