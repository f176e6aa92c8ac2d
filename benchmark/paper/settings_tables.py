"""Print the settings tables of the paper from the configs: they show what would run, not what the paper says."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmark.base.schema import build
from benchmark.config.load import load_task
from benchmark.config.recipe import augmentation, schedule
from benchmark.config.task import TaskConfig
from benchmark.jobs.job import Methods
from benchmark.jobs.plan import label_owners, resolve_config
from benchmark.measure.labels import match_labels
from benchmark.paper.table_files import SCALES
from benchmark.paper.values import FOLDER
from benchmark.tables.model import Sheet


@dataclass(frozen=True)
class SettingsTable:
    title: str
    methods: dict[str, Any] = field(default_factory=dict)
    """By label: symbol → field of the method's settings."""
    recipe: tuple[str, ...] = ()
    """Names of RECIPE, one per line."""


def settings_sheets(methods: Methods, scale: str) -> list[Sheet]:
    described = tomllib.loads((FOLDER / "settings.toml").read_text(encoding="utf-8"))
    tasks = [load_task(f"{name}{SCALES[scale]}") for name in described["tasks"]]
    tables = [build(SettingsTable, table, "settings.toml") for table in described["table"]]
    return [settings_sheet(table, tasks, methods) for table in tables]


def settings_sheet(table: SettingsTable, tasks: list[TaskConfig], methods: Methods) -> Sheet:
    """Return a sheet with a line for each setting and a column for each task."""
    rows = [(name, *(RECIPE[name](task) for task in tasks)) for name in table.recipe]
    for label, symbols in table.methods.items():
        owner = f"{label}: " if len(table.methods) > 1 else ""
        for symbol, name in symbols.items():
            rows.append((f"{owner}{symbol}", *(setting_text(task, label, name, methods) for task in tasks)))
    return Sheet("settings", table.title, ("setting", *(task.title for task in tasks)), tuple(rows))


def setting_text(task: TaskConfig, label: str, name: str, methods: Methods) -> str:
    """Return the value of a setting; a dash where the task does not have the method."""
    owners = label_owners(methods)
    known = match_labels([label], owners)[0]
    if known not in match_labels(task.methods, owners):
        return "–"
    config = resolve_config(task, known, owners[known], methods.get(owners[known]))
    return f"{getattr(config, name):g}"


RECIPE: dict[str, Callable[[TaskConfig], str]] = {
    "network": lambda task: task.network.name,
    "epochs": lambda task: str(task.epochs),
    "optimiser": lambda task: task.optimizer.name,
    "learning rate": lambda task: f"{task.optimizer.lr:g}",
    "momentum": lambda task: f"{task.optimizer.momentum:g}",
    "weight decay": lambda task: f"{task.optimizer.weight_decay:g}",
    "batch size": lambda task: str(task.batch_size),
    "schedule": schedule,
    "augmentation": augmentation,
    "tested epoch": lambda task: task.checkpoint,
    "seeds": lambda task: str(task.seeds),
}
