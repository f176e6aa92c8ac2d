"""The settings tables of the paper, printed from the configs: what would run, and not what is said to have run."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmark.config import TaskConfig
from benchmark.figures import FOLDER
from benchmark.jobs import Methods
from benchmark.names import match_labels
from benchmark.planner import label_owners, resolve_config
from benchmark.published import SCALES
from benchmark.recipe import augmentation, schedule
from benchmark.schema import build
from benchmark.sheet import Sheet
from benchmark.tasks import load_task


@dataclass(frozen=True)
class SettingsTable:
    title: str
    methods: dict[str, Any] = field(default_factory=dict)
    """By label: symbol → field of the method's settings."""
    recipe: tuple[str, ...] = ()
    """Lines of RECIPE."""


def settings_sheets(methods: Methods, scale: str) -> list[Sheet]:
    described = tomllib.loads((FOLDER / "settings.toml").read_text(encoding="utf-8"))
    tasks = [load_task(f"{name}{SCALES[scale]}") for name in described["tasks"]]
    tables = [build(SettingsTable, table, "settings.toml") for table in described["table"]]
    return [settings_sheet(table, tasks, methods) for table in tables]


def settings_sheet(table: SettingsTable, tasks: list[TaskConfig], methods: Methods) -> Sheet:
    """A line for each setting, a column for each task."""
    rows = [(name, *(RECIPE[name](task) for task in tasks)) for name in table.recipe]
    for label, symbols in table.methods.items():
        owner = f"{label}: " if len(table.methods) > 1 else ""
        for symbol, name in symbols.items():
            rows.append((f"{owner}{symbol}", *(shown(task, label, name, methods) for task in tasks)))
    return Sheet("settings", table.title, ("setting", *(task.title for task in tasks)), tuple(rows))


def shown(task: TaskConfig, label: str, name: str, methods: Methods) -> str:
    """The value of a setting; a dash where the task's own table does not have the method."""
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
