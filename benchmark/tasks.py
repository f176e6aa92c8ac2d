"""Task files: where they lie, what they extend, and what a command line changes in them."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.config import TaskConfig
from benchmark.errors import UserError
from benchmark.names import match_name
from benchmark.schema import build

CONFIG_DIR = Path(__file__).resolve().parent.parent / "configs"


def task_names() -> list[str]:
    return sorted(path.stem for path in CONFIG_DIR.glob("*.toml"))


def load_task(name: str, overrides: Iterable[str] = (), defaults: Mapping[str, Any] | None = None) -> TaskConfig:
    """The task called `name`, or described by the TOML file at that path, with `key=value` overrides.

    `defaults` are what the machine suggests where the task says nothing.
    """
    path = task_path(name)
    tables = {**(defaults or {}), **read_task(path, ())}
    for override in overrides:
        apply_override(tables, override)
    if "name" in tables:
        raise UserError(f"{name}: a task's name is that of its file; remove 'name'")
    return build(TaskConfig, {**tables, "name": path.stem}, str(name))


def load_tasks(
    names: Iterable[str], overrides: Iterable[str] = (), defaults: Mapping[str, Any] | None = None
) -> list[TaskConfig]:
    """Several tasks, each once. Two files of one name would share their results and are refused."""
    paths = {task_path(name).resolve(): name for name in names}
    tasks = [load_task(name, overrides, defaults) for name in paths.values()]
    for task in tasks:
        if sum(task.name == other.name for other in tasks) > 1:
            raise UserError(f"two tasks are called '{task.name}': rename one of the files")
    return tasks


def task_path(name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        if not Path(name).is_file():
            raise UserError(
                f"task file '{name}' does not exist; give a path to a .toml file or one of: {', '.join(task_names())}"
            )
        return Path(name)
    return CONFIG_DIR / f"{match_name(name, task_names(), 'task')}.toml"


def read_task(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """The tables of a task file on top of those it extends."""
    path = path.resolve()
    if path in seen:
        raise UserError(f"{path.name} extends itself: {' → '.join(p.name for p in (*seen, path))}")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    data = tables.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        data["path"] = str(path.parent / data["path"])
    parent = tables.pop("extends", None)
    if parent is None:
        return tables
    beside = path.parent / f"{parent}.toml"
    return merge(read_task(beside if beside.is_file() else task_path(str(parent)), (*seen, path)), tables)


def merge(base: dict[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        both_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both_tables else value
    return merged


def apply_override(tables: dict[str, Any], override: str) -> None:
    """`optimizer.lr=0.05`; numbers, true/false and comma-separated lists are read by the field's type."""
    key, equals, value = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise UserError(f"--set '{override}': expected KEY=VALUE, e.g. --set optimizer.lr=0.05")
    table = tables
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UserError(f"--set '{override}': '{part}' is a value, not a table")
    table[parts[-1]] = value.strip()
