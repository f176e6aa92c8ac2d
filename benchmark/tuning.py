"""The search for a method's settings: what is tried, on which images it is judged, and what came of it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.files import Damaged
from benchmark.interface import Contestant, Method
from benchmark.jobs import Entry, Job, Methods
from benchmark.metrics import aurc
from benchmark.names import canonical
from benchmark.planner import Planner, label_owners, resolve_config
from benchmark.sheet import Sheet
from benchmark.store import PREDICTION_VAL, Store

Settings = dict[str, Any]


def find_grid(task: TaskConfig, label: str, owner: str, asked: Sequence[str]) -> list[Settings]:
    """Every combination of the values asked for on the command line, else of the task's for the label or its file."""
    grid = read_grid(asked)
    for name in (owner, label):
        found = next((grid for key, grid in task.tune.items() if canonical(key) == canonical(name)), None)
        grid = grid if asked or found is None else dict(found)
    if not grid:
        raise UserError(
            f"{task.name} has no grid for {label}: add a table [tune.{owner}] to its file, or --grid FIELD=VALUE,VALUE"
        )
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def read_grid(asked: Iterable[str]) -> dict[str, list[str]]:
    grid: dict[str, list[str]] = {}
    for text in asked:
        name, equals, values = text.partition("=")
        if not equals or not all(value.strip() for value in values.split(",")):
            raise UserError(f"--grid '{text}': expected FIELD=VALUE,VALUE, e.g. --grid weight=0.1,0.5,1.0")
        grid.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return grid


def trial_entries(
    planner: Planner, methods: Methods, label: str, trials: Sequence[Settings], seeds: Sequence[int]
) -> tuple[Entry, ...]:
    """One entry for each combination of settings."""
    owner = label_owners(methods)[label]
    method = methods.get(owner)
    if issubclass(method, Method) and method.one_per_coverage is not None:
        raise UserError(f"{label} is trained for one coverage at a time, so no single AURC judges it: it is not tuned")
    entries = {}
    for settings in trials:
        config = resolve_config(planner.task, label, owner, method, **settings)
        typed = {name: getattr(config, name) for name in settings}
        jobs = tuple(planner.job(f"{label} {text_of(typed)}", owner, config, seed) for seed in seeds)
        entries[jobs[0].id] = Entry(text_of(typed), owner, jobs)
    return tuple(entries.values())


def text_of(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


@dataclass(frozen=True)
class Trial:
    """One combination of settings, with the validation AURC of each seed that has one."""

    settings: Settings
    job: str
    by_seed: dict[str, float]
    recipe: str = ""
    """All but the method's settings, as a hash: only trials that share it can be compared."""
    split: str = ""
    """The images it was judged on."""

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_seed.values()))) if self.by_seed else float("inf")


def read_trials(
    entries: Iterable[Entry], names: Iterable[str], method: type[Contestant], split: str, store: Store
) -> list[Trial]:
    """What the finished runs say of the validation images; the test images are not looked at."""
    fields = list(names)
    return [
        Trial(
            {name: entry.jobs[0].config[name] for name in fields},
            entry.jobs[0].id,
            {str(job.seed): found for job in entry.jobs if (found := validation_aurc(job, method, store)) is not None},
            recipe_hash(entry.jobs[0]),
            split,
        )
        for entry in entries
    ]


def recipe_hash(job: Job) -> str:
    described = {name: value for name, value in job.identity().items() if name not in ("config", "warmup")}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def validation_aurc(job: Job, method: type[Contestant], store: Store) -> float | None:
    """With the score that the method was published with; None for a run without a result that can be believed."""
    if store.state(job.folder) != "done":
        return None
    try:
        validation = store.read_prediction(job.folder, PREDICTION_VAL)
    except (FileNotFoundError, Damaged):
        return None
    confidence = next(iter(method.scores(validation.prediction).values()))
    return aurc(confidence, validation.prediction.logits.argmax(axis=1) != validation.labels)


def choose(trials: Sequence[Trial], seeds: Sequence[int]) -> Trial | None:
    """The lowest mean over the seeds asked for, among the trials that have them all; the first of equal ones."""
    wanted = {str(seed) for seed in seeds}
    whole = [trial for trial in trials if wanted <= trial.by_seed.keys()]
    return min(whole, key=lambda trial: np.mean([trial.by_seed[seed] for seed in sorted(wanted)]), default=None)


def add_to_ledger(ledger: dict[str, Any], label: str, trials: Sequence[Trial], seeds: Sequence[int]) -> dict[str, Any]:
    """The ledger of a task with the trials of a method added to those that it had before: none is ever dropped.

    The choice is among all trials, old and new, of the same recipe; where none is whole yet, the old one stands.
    """
    entry = ledger.get("methods", {}).get(label, {"chosen": "", "trials": []})
    known = {trial["job"]: Trial(**trial) for trial in entry["trials"]}
    for trial in trials:
        old = known.get(trial.job, trial)
        settings, by_seed = {**old.settings, **trial.settings}, {**old.by_seed, **trial.by_seed}
        known[trial.job] = replace(trial, settings=settings, by_seed=by_seed)
    chosen = choose([trial for trial in known.values() if trial.recipe == trials[0].recipe], seeds)
    entry = {"chosen": chosen.job if chosen else entry["chosen"], "trials": [vars(trial) for trial in known.values()]}
    return {**ledger, "methods": {**ledger.get("methods", {}), label: entry}}


def ledger_sheets(ledger: Mapping[str, Any]) -> list[Sheet]:
    """How many settings each method was given, on which images, and all of them."""
    rows, sheets = [], []
    for label, entry in ledger["methods"].items():
        trials = [Trial(**trial) for trial in entry["trials"]]
        for recipe in dict.fromkeys(trial.recipe for trial in trials):
            rows.append((label, *recipe_row([trial for trial in trials if trial.recipe == recipe], entry["chosen"])))
        sheets.append(trials_sheet(label, trials, entry["chosen"]))
    heading = ("method", "settings tried", "with a result", "seeds", "judged on", "recipe", "chosen", "AURC ×10³")
    caption = (
        f"Selection ledger of {ledger['task']}: how many settings each method was given, and on which images. Only "
        "trials of one recipe (data, network, training) are compared with each other."
    )
    return [Sheet("ledger", caption, heading, tuple(rows)), *sheets]


def recipe_row(trials: Sequence[Trial], chosen: str) -> tuple[str, ...]:
    """What the trials of one recipe come to."""
    best = next((trial for trial in trials if trial.job == chosen), None)
    seeds = sorted({seed for trial in trials for seed in trial.by_seed}, key=int)
    outcome = (text_of(best.settings), f"{1000 * best.mean:.2f}") if best else ("–", "–")
    counts = (str(len(trials)), str(sum(bool(trial.by_seed) for trial in trials)))
    return (*counts, ", ".join(seeds), trials[0].split, trials[0].recipe, *outcome)


def trials_sheet(label: str, trials: Sequence[Trial], chosen: str) -> Sheet:
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    ordered = sorted(trials, key=lambda trial: (trial.recipe, trial.mean))
    rows = [
        (
            *(str(trial.settings.get(name, "–")) for name in names),
            f"{1000 * trial.mean:.2f}" if trial.by_seed else "no result",
            str(len(trial.by_seed)),
            trial.recipe,
            trial.job,
            "chosen" if trial.job == chosen else "",
        )
        for trial in ordered
    ]
    numbers = [
        {"method": label, **trial.settings, "job": trial.job, "seed": seed, "aurc": value}
        for trial in ordered
        for seed, value in trial.by_seed.items()
    ]
    heading = (*names, "validation AURC ×10³", "seeds", "recipe", "job", "")
    return Sheet("trials", f"Every trial of {label}.", heading, tuple(rows), numbers=tuple(numbers))


def tuned_task(ledger: Mapping[str, Any]) -> str:
    """A task file with the chosen settings of all methods tuned so far."""
    lines = [
        f"# {ledger['task']} with the settings that `python run_all.py tune` chose by validation AURC.",
        f"extends = {json.dumps(ledger['extends'])}",
        f"title = {json.dumps(ledger['title'] + ' (tuned)', ensure_ascii=False)}",
    ]
    for label, entry in ledger["methods"].items():
        best = next((trial for trial in entry["trials"] if trial["job"] == entry["chosen"]), None)
        if best is not None:
            lines += ["", f"[method.{json.dumps(label)}]"]
            lines += [f"{name} = {json.dumps(value)}" for name, value in best["settings"].items()]
    return "\n".join(lines) + "\n"
