"""Define what can be asked of the library: a small frozen value for each thing that it does.

Importing this costs next to nothing, as `--help` does it. Results lie in a folder, or at the URL of one.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from benchmark.base.errors import UserError
from benchmark.base.limits import SEED, SEEDS, Within, read_number, shown
from benchmark.base.schema import coerce, wrong_type
from benchmark.base.units import MOST_BYTES, bytes_from_text
from benchmark.config.task import check_coverages

DATA_VARIABLE, CACHE_VARIABLE = "SELBENCH_DATA", "SELBENCH_CACHE"
"""Environment variables that name the folders of data sets and of decoded images."""
PER_CENT = Within(0, 100, "it is a share of all images")
DDOF = Within(0, 1, "a sample has one degree of freedom less, and no more")
DECIMALS = Within(0, 6, "no test set tells more apart")
WORKERS = Within(0, 1024, "no machine can run more processes")
JOBS_PER_DEVICE = Within(1, 64, "no GPU can run more processes")
GPUS_PER_JOB = Within(1, 64, "no machine has more GPUs")
RETRIES = Within(0, 100, "a job that dies more often will not finish")
MAX_STEPS = Within(1, 10**6, "it is for a try; leave it out to train")
MOST_DEVICES = 1000
Coverage = Annotated[float, PER_CENT]
Pairs = tuple[tuple[str, float], ...]
"""Names, each with a number."""


class Options:
    """A value that is checked when it is made, whoever makes it: the command line or a program."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            object.__setattr__(self, name, checked(getattr(self, name), hint, name))


def checked(value: Any, hint: Any, name: str) -> Any:
    """Return a value in the type of its field: paths of text, tuples of lists. Refuse other types and numbers."""
    inner = get_args(hint)
    if NoneType in inner:
        found = None if value is None else checked(value, inner[0], name)
        if found == ():
            raise UserError(f"{name}: expected at least one, got none; leave it out for the default")
        return found
    if hint in (str, Path) and isinstance(value, (str, os.PathLike)):
        return hint(value)
    if get_origin(hint) is tuple:
        items = [value] if isinstance(value, (str, os.PathLike)) else value
        if not isinstance(items, Iterable):
            raise wrong_type(value, "a list", name)
        items, is_long = tuple(items.items() if isinstance(items, Mapping) else items), inner[-1] is Ellipsis
        if not is_long and len(items) != len(inner):
            raise wrong_type(value, f"{len(inner)} values", name)
        return tuple(checked(item, inner[0 if is_long else index], name) for index, item in enumerate(items))
    if hint == Coverage:
        try:
            return read_coverage(value)
        except ValueError as error:
            raise UserError(f"{name}: {error}") from None
    return coerce(value, hint, name)


def read_coverage(value: Any) -> float:
    """Return a coverage in per cent; raise a ValueError where it is none."""
    number = float(read_number(value, float, PER_CENT))
    check_coverages([number])
    return number


def device_counts(text: str) -> tuple[tuple[int, str], ...]:
    """Return how many devices of which name are meant by a text such as `8xA100,4xL4`; else raise a ValueError."""
    parts = [re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*[x×]\s*(\w[\w.+ -]*?)\s*", part) for part in text.split(",")]
    found = tuple((int(part[1]), part[2]) for part in parts if part)
    if len(found) < len(parts) or sum(count for count, _ in found) > MOST_DEVICES:
        expected = f"up to {MOST_DEVICES} devices such as 8xA100 or 8xA100,4xL4"
        raise ValueError(f"expected {expected}, got {shown(text)}")
    return found


@dataclass(frozen=True, kw_only=True)
class MarkerOptions(Options):
    """The test behind the markers of a table; what is None, the table says."""

    test: Literal["exact", "ranksums", "paired"] | None = None
    holm: Literal["row", "column", "table"] | None = None
    threshold: Literal["sort", "percentile"] | None = None


@dataclass(frozen=True, kw_only=True)
class TableOptions(MarkerOptions):
    """What a table shows, and how; what is None, its task says."""

    coverages: tuple[Coverage, ...] | None = None
    reference: str | None = None
    scores: tuple[str, ...] | None = None
    transpose: bool | None = None
    ddof: Annotated[int, DDOF] | None = None
    decimals: Annotated[int, DECIMALS] | None = None
    intervals: bool | None = None


@dataclass(frozen=True, kw_only=True)
class TablesOptions(TableOptions):
    """Which tables of a results folder to write; all of them where none are named."""

    results: str = "results"
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    ingredients: tuple[str, ...] = ()
    """Show the methods as they are with these, by name."""
    paper: tuple[str, ...] | None = None
    plugin: tuple[Path, ...] = ()
    out: Path | None = None


@dataclass(frozen=True, kw_only=True)
class FiguresOptions(Options):
    """Which figures of a results folder to draw; all of them where none are named."""

    results: str = "results"
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    ingredients: tuple[str, ...] = ()
    """Draw the methods as they are with these, by name."""
    reference: str | None = None
    scores: tuple[str, ...] | None = None
    plugin: tuple[Path, ...] = ()
    out: Path | None = None
    plain: bool = False
    """Whether the sentences below a figure are returned instead of drawn."""


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(Options):
    """A results folder whose measures to bring up to date, and scores to measure in addition to each run's own."""

    results: str = "results"
    scores: tuple[str, ...] | None = None
    plugin: tuple[Path, ...] = ()
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(TableOptions):
    """Files with predictions that were made elsewhere, and where to store them."""

    files: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    """Of tables: the column of a field, each as FIELD=COLUMN."""
    labels: Path | None = None
    """A file with the true classes, for files that have none."""
    given: Literal["logits", "log_probabilities", "probabilities"] | None = None
    """What an npy file has; None: logits."""
    task: str | None = None
    title: str | None = None
    paired: bool | None = None
    """Whether runs of one seed are pairs across methods."""
    normalise: bool = False
    allow_ties: bool = False
    replace: bool = False
    results: str = "results"
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(MarkerOptions):
    """A cell of a table: its task (or paper/NAME), its column and its row."""

    task: str
    method: str
    row: str
    """A coverage in per cent; of an evaluation set also the name of a row."""
    results: str = "results"
    reference: str | None = None
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiffOptions(Options):
    """Two results folders."""

    old: str
    new: str
    part: bool = False
    """Whether the new one repeats only a part of the old one."""
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataOptions(Options):
    """The folders of data sets and of decoded images; None: as an environment variable says, or data/."""

    data_dir: Path | None = None
    cache_dir: Path | None = None


@dataclass(frozen=True, kw_only=True)
class PrepareOptions(DataOptions):
    """The tasks whose images to prepare, with changed settings, each as KEY=VALUE."""

    tasks: tuple[str, ...]
    set: tuple[str, ...] = ()
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """A method by name, or a user's own file, with changed settings, each as FIELD=VALUE."""

    method: str
    set: tuple[str, ...] = ()
    data_dir: Path | None = None
    """Where a source of the file finds its data; None: as an environment variable says, or data/."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(DataOptions):
    """How jobs run, where, and what is kept. Only the first four fields can change a result."""

    channels_last: bool | None = None
    amp: Literal["off", "bf16", "fp16"] | None = None
    compile: bool | None = None
    max_steps: Annotated[int, replace(MAX_STEPS, least=0)] = 0
    """Try so many steps of each job; 0: train."""
    results: str = "results"
    device: str = "auto"
    data_budget: Annotated[int, Within(0, MOST_BYTES)] | None = None
    """In bytes, or as text such as 4GB."""
    workers: Annotated[int, WORKERS] | None = None
    ray: str | None = None
    jobs_per_device: Annotated[int, JOBS_PER_DEVICE] = 1
    gpus_per_job: Annotated[int, GPUS_PER_JOB] = 1
    keep_weights: bool = False
    keep_features: bool = False
    keep_trunks: bool = False
    share_warmups: bool = True
    track_bound: bool = False
    tensorboard: bool = False
    """Write learning curves for TensorBoard, too."""
    retries: Annotated[int, RETRIES] = 1
    redo_stale: bool = False
    fail_fast: bool = False
    quiet: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.data_budget is not None:
            try:
                object.__setattr__(self, "data_budget", bytes_from_text(str(self.data_budget)))
            except ValueError as error:
                raise UserError(f"data_budget: {error}") from None
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RunOptions(TrainingOptions, TableOptions):
    """A grid of tasks, methods and seeds; where none are named, the demo's tasks and what each task says."""

    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: Annotated[int, SEEDS] | None = None
    """Train with seeds 0 to N - 1."""
    seed_list: tuple[Annotated[int, SEED], ...] | None = None
    """Train with exactly these seeds instead."""
    ingredients: tuple[str, ...] = ()
    """What goes with every method, by name, such as swa and sam."""
    factors: tuple[str, ...] = ()
    """Cross every method with all combinations of levels, each factor as a text such as "swa|none"."""
    set: tuple[str, ...] = ()
    """Changed settings, each as KEY=VALUE."""
    evaluate: tuple[str, ...] | None = None
    """Evaluation sets: names of the task's own, or what says by itself what they are, such as new=svhn; `none` for
    none. None: all that the task names."""
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PaperOptions(TrainingOptions, MarkerOptions):
    """The published tables to make, by name or `all`."""

    tables: tuple[str, ...]
    scale: Literal["paper", "cpu"] = "paper"
    seeds: Annotated[int, SEEDS] | None = None


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TrainingOptions):
    """A method whose settings to search on a task."""

    task: str
    method: str
    grid: tuple[str, ...] = ()
    """Values to try, each as FIELD=V,V; none: the task's grid."""
    seeds: Annotated[int, SEEDS] = 1
    ingredients: tuple[str, ...] = ()
    """What goes with every trial, by name."""
    set: tuple[str, ...] = ()
    plugin: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanningOptions(Options):
    """How the time of a plan is found: by earlier records, unless this says otherwise."""

    probe: bool = False
    """Measure a few steps now."""
    step_seconds: Pairs = ()
    """By task."""
    cluster: tuple[tuple[int, str], ...] | None = None
    """Simulate the run on so many devices of each name."""
    speed: Pairs = ()
    price: Pairs = ()
