"""Search for a method's settings: plan the trials, choose the images that judge them, and read their results."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.files import Damaged
from benchmark.base.names import canonical
from benchmark.config.recipe import FIELDS
from benchmark.config.task import TaskConfig
from benchmark.interface import Contestant, Method
from benchmark.jobs.earlier_ids import before_held_out, trial_as_found
from benchmark.jobs.job import Job, Methods
from benchmark.jobs.plan import Planner, label_owners, resolve_config
from benchmark.jobs.suite import Entry
from benchmark.measure.metrics import aurc
from benchmark.store.provenance import Provenance
from benchmark.store.stale import torch_of
from benchmark.store.store import PREDICTION_VAL, Store, folder_of
from benchmark.tune.ledger import Settings, Trial, settings_text

MOST_SETTINGS = 10_000
NOT_SEARCHED = ("data", "eval_batch_size", "evaluate_at", "threads")
"""Fields that decide which images judge a trial, or how it runs."""


def find_grid(task: TaskConfig, label: str, owner: str, options: Sequence[str]) -> list[Settings]:
    """Return every combination of the values of --grid, else of the task's grid for the label or its method's file."""
    grids = {canonical(name): grid for name, grid in reversed(task.tune.items())}  # of equal names, the first counts
    grid = read_grid(options) or grids.get(canonical(label), grids.get(canonical(owner), {}))
    if not grid:
        raise UserError(
            f"{task.name} has no grid for {label}: add a table [tune.{owner}] to its file, or --grid FIELD=VALUE,VALUE"
        )
    if (count := prod(map(len, grid.values()))) > MOST_SETTINGS:
        raise UserError(
            f"the grid of {label} has {count:,} settings; expected at most {MOST_SETTINGS:,}, for each is a training: "
            "give fewer values or fewer fields"
        )
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def read_grid(options: Iterable[str]) -> dict[str, list[str]]:
    grid: dict[str, list[str]] = {}
    for text in options:
        name, equals, values = text.partition("=")
        if not equals or not all(value.strip() for value in values.split(",")):
            raise UserError(
                f"--grid '{text}': expected FIELD=VALUE,VALUE, e.g. --grid weight=0.1,0.5,1.0 or optimizer.lr=0.1,0.05"
            )
        grid.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return grid


def is_task_field(name: str, method: type[Contestant]) -> bool:
    """Tell whether a name in a grid is a field of the task, and not a setting of the method."""
    if name in {field.name for field in fields(method.Config)}:
        return False
    table = name.partition(".")[0]
    if table in NOT_SEARCHED:
        raise UserError(f"{name} cannot be searched: trials are compared on the same images; use --set {name}=VALUE")
    return table in FIELDS


def without_idle_validation(task: TaskConfig, method: type[Contestant], methods: Methods) -> TaskConfig:
    """Return the task of a trial. It trains on the validation images, if nothing needs them during training."""
    names = [method.warmup, method.starts_from] if issubclass(method, Method) else []
    taking_part = [method, *(methods.get(name) for name in names if name)]
    used = any(each.needs_validation for each in taking_part)
    if used and not task.data.has_validation:
        raise UserError(
            f"{task.name}: this method needs validation images beside those that judge its trials; "
            "add --set data.val=0.1"
        )
    in_stage = any(issubclass(each, Method) and each.second_stage for each in taking_part)
    if used or in_stage or task.checkpoint == "best":
        return task
    return replace(task, data=replace(task.data, val=0.0, official_val=False, val_images=0))


@dataclass(frozen=True)
class PlannedTrial:
    """One combination of settings with its jobs."""

    entry: Entry
    settings: Settings
    """Of the method."""
    changes: Settings
    """Fields of the task, by their dotted names."""
    former: str
    """The id of its trials in older versions, before they had held-out images; empty where that training differed."""
    recipe: str
    """A hash of all that is not searched."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.entry.jobs


def make_trials(
    planner_with: Callable[[Settings], Planner],
    methods: Methods,
    label: str,
    trials: Sequence[Settings],
    seeds: Sequence[int],
    always: Mapping[str, Any] | None = None,
) -> list[PlannedTrial]:
    """Return one planned trial for each combination of settings. `planner_with` plans the task with changed fields.

    `always` is what the command line sets for all trials, by dotted name.
    """
    owner = label_owners(methods)[label]
    method = methods.get(owner)
    if issubclass(method, Method) and method.one_per_coverage is not None:
        raise UserError(f"{label} cannot be tuned: it is trained for one coverage at a time, so it has no single AURC")
    planners, tried = {"": planner_with({})}, {}
    own, shared = split_overrides(always or {}, label, owner)
    for combination in trials:
        changes = {name: value for name, value in combination.items() if is_task_field(name, method)}
        settings = {name: value for name, value in combination.items() if name not in changes}
        if settings_text(changes) not in planners:
            planners[settings_text(changes)] = planner_with(changes)
        planner = planners[settings_text(changes)]
        config = resolve_config(planner.task, label, owner, method, **settings)
        typed = {name: getattr(config, name) for name in (*own, *settings)}
        changed = {**shared, **{name: value_at(planner.task, name) for name in changes}}
        text = settings_text(typed | changed)
        jobs = tuple(planner.job(f"{label} {text}", owner, config, seed) for seed in seeds)
        former = [old.id for old in before_held_out(jobs[0])]
        recipe = recipe_hash(jobs[0], planners[""].task)
        tried[jobs[0].id] = PlannedTrial(Entry(text, owner, jobs), typed, changed, "".join(former), recipe)
    return list(tried.values())


def split_overrides(always: Mapping[str, Any], label: str, owner: str) -> tuple[list[str], Settings]:
    """Split what the command line sets into settings of the method, and other fields that can change a result."""
    own, shared = [], {}
    for name, value in always.items():
        table, _, rest = name.partition(".")
        about, _, setting = rest.rpartition(".")
        if table == "method" and canonical(about) in (canonical(label), canonical(owner)):
            own.append(setting)
        elif table in (*FIELDS, "method"):
            shared[name] = value
    return own, shared


def value_at(task: TaskConfig, name: str) -> Any:
    """Return the value of a task's field by its dotted name."""
    value: Any = task
    for part in name.split("."):
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
    if name == "data.path":
        return str(Path(value).resolve())
    return list(value) if isinstance(value, tuple) else value


def recipe_hash(job: Job, task: TaskConfig) -> str:
    """Return a hash of all that trials must share to be compared: the task without the fields that are searched."""
    (base,) = before_held_out(replace(job, task=task)) or [replace(job, task=task)]
    searched = ("config", "warmup", "needs", "source_sha256")
    described = {name: value for name, value in base.identity().items() if name not in searched}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def as_stored(tried: Sequence[PlannedTrial], store: Store) -> list[PlannedTrial]:
    """Return the trials with the ids under which their results are already stored."""
    return [
        replace(each, entry=replace(each.entry, jobs=tuple(trial_as_found(job, store) for job in each.entry.jobs)))
        for each in tried
    ]


def read_trials(tried: Iterable[PlannedTrial], method: type[Contestant], split: str, store: Store) -> list[Trial]:
    """Return the results of finished runs on the held-out images; the test images are never used."""
    trials = []
    for each in tried:
        by_seed, makers = {}, {}
        for job in each.entry.jobs:
            if (value := held_out_aurc(job, method, store)) is not None:
                by_seed[str(job.seed)] = value
                makers[str(job.seed)] = maker_of(job.folder, store)
        known = (each.entry.jobs[0].id, by_seed, each.recipe, split, each.changes, makers, each.former)
        trials.append(Trial(each.settings, *known))
    return trials


def held_out_aurc(job: Job, method: type[Contestant], store: Store) -> float | None:
    """Return the AURC of a run with its method's published score; None where the result is missing or damaged."""
    if store.state(job.folder) != "done":
        return None
    try:
        judged = store.read_prediction(job.folder, job.measured if job.held_out else PREDICTION_VAL)
    except (FileNotFoundError, Damaged):
        return None
    confidence = next(iter(method.scores(judged.prediction).values()))
    return aurc(confidence, judged.prediction.logits.argmax(axis=1) != judged.labels)


def maker_of(folder: Path, store: Store) -> str:
    """Return the code and the torch that made a result; empty where its record does not have them."""
    record = store.read_record(folder)
    made = record.provenance if record is not None else Provenance()
    torches = sorted({f"torch {torch_of(each)}" for each in made.environments})
    return ", ".join([*(made.codes or ()), *torches])


def with_makers(trials: Iterable[Trial], task: str, owner: str, store: Store) -> list[Trial]:
    """Add the code that made each result to trials of an older ledger, from their records."""

    def makers(trial: Trial) -> dict[str, str]:
        return {seed: maker_of(folder_of(task, owner, trial.job, int(seed)), store) for seed in trial.by_seed}

    return [each if each.made_by else replace(each, made_by=makers(each)) for each in trials]
