"""Read task files, with the tasks they extend and what the command line changes in them."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark.base.errors import UserError
from benchmark.base.limits import shown
from benchmark.base.names import canonical, match_name
from benchmark.base.program import CARRIED_CONFIGS, FROM_WHEEL, ROOT
from benchmark.base.schema import build
from benchmark.config.evaluation import EvaluationConfig, looks_like_file, read_evaluation
from benchmark.config.task import MEASURED, TaskConfig

CONFIG_DIR = CARRIED_CONFIGS if FROM_WHEEL else ROOT / "configs"
MOST_BYTES = 1_000_000
MOST_PARENTS = 20
MOST_LEVELS = 10
"""The most levels of tables within tables; a task has three."""


def task_names() -> list[str]:
    return sorted(path.stem for path in CONFIG_DIR.glob("*.toml"))


def load_task(name: str, overrides: Iterable[str] = (), defaults: Mapping[str, Any] | None = None) -> TaskConfig:
    """Return the task called `name`, or described by the TOML file at that path, with `key=value` overrides.

    `defaults` are values for this machine, used where the task says nothing.
    """
    path, changes = task_path(name), parse_overrides(overrides)
    resolve_data_path(changes, Path.cwd())
    tables = extend({**(defaults or {}), **read_task(path, ())}, changes)
    check_levels(tables, name)
    if "name" in tables:
        raise UserError(f"{name}: a task's name is that of its file; remove 'name'")
    return build(TaskConfig, {**tables, "name": path.stem}, str(name))


def load_tasks(
    names: Iterable[str], overrides: Iterable[str] = (), defaults: Mapping[str, Any] | None = None
) -> list[TaskConfig]:
    """Return several tasks, each once. Refuse two files of one name, as they would share their results."""
    paths = {task_path(name).resolve(): name for name in names}
    tasks = [load_task(name, overrides, defaults) for name in paths.values()]
    for task in tasks:
        if sum(task.name == other.name for other in tasks) > 1:
            raise UserError(f"two tasks are called '{task.name}': rename one of the files")
    return tasks


def task_path(name: str) -> Path:
    if is_file_name(name):
        if not Path(name).is_file():
            raise UserError(
                f"task file '{name}' does not exist; give a path to a .toml file or one of: {', '.join(task_names())}"
            )
        return Path(name)
    return CONFIG_DIR / f"{match_name(name, task_names(), 'task')}.toml"


def is_file_name(name: str) -> bool:
    """Tell whether a task is meant by its file, and not by its name among those of the suite."""
    return name.endswith(".toml") or "/" in name


def read_task(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the tables of a task file, merged over those of the task it extends."""
    path = path.resolve()
    if path in seen:
        raise UserError(f"{path.name} extends itself: {' → '.join(p.name for p in (*seen, path))}")
    if len(seen) > MOST_PARENTS:
        raise UserError(f"{seen[0].name}: more than {MOST_PARENTS} files extend each other; two or three should do")
    tables = read_tables(path)
    resolve_data_path(tables, path.parent)
    resolve_set_paths(tables, path.parent)
    parent = tables.pop("extends", None)
    if parent is None:
        return tables
    if not isinstance(parent, str):
        raise UserError(f"{path.name}: extends: expected the name of a task, got {shown(parent)}")
    beside = path.parent / f"{parent.removesuffix('.toml')}.toml"
    return extend(read_task(beside if beside.is_file() else task_path(parent), (*seen, path)), tables)


def extend(base: dict[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` changed by `top`. Drop what `base` says of a network, images or labels that `top` replaces."""
    kept = dict(base)
    if other_name(base, top, "network", "name"):
        del kept["network"]
    if other_name(base, top, "data", "source") in MEASURED:
        kept["data"] = {name: value for name, value in base["data"].items() if name not in ("mean", "std")}
        kept.pop("augment", None)
    if other_name(base, top, "data", "train_labels") is not None:
        kept["data"] = {name: value for name, value in kept["data"].items() if name != "train_labels_sha256"}
    return merge(kept, top)


def other_name(base: Mapping[str, Any], top: Mapping[str, Any], table: str, field: str) -> str | None:
    """Return the name that `top` gives where `base` has another, else None."""
    old, new = (tables[table].get(field) if isinstance(tables.get(table), Mapping) else None for tables in (base, top))
    return None if new is None or old is None or new == old else str(new)


def resolve_data_path(tables: dict[str, Any], folder: Path) -> None:
    """Make paths to data and weights absolute from the folder they were written for, as a job may run elsewhere."""
    data = tables.get("data")
    for name in ("path", "test_path", "outliers"):
        value = data.get(name) if isinstance(data, dict) else None
        if isinstance(data, dict) and isinstance(value, str) and value and (name != "outliers" or is_file_name(value)):
            data[name] = str(folder / value)
    labels = data.get("train_labels") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(labels, str) and lies_in(folder, file_and_array(labels)[0]):
        data["train_labels"] = str(folder / labels)  # else it lies in the folder of the data sets
    network = tables.get("network")
    weights = network.get("weights") if isinstance(network, dict) else None
    if isinstance(network, dict) and isinstance(weights, str) and weights not in ("", "default"):
        network["weights"] = str(folder / weights)


def resolve_set_paths(tables: dict[str, Any], folder: Path) -> None:
    """Do the same for the files of evaluation sets."""
    sets = tables.get("evaluate")
    for table in sets if isinstance(sets, list) else []:
        for name in ("images", "file"):
            if isinstance(table, dict) and isinstance(table.get(name), str):
                table[name] = located(table[name], folder)


def located(name: str, folder: Path) -> str:
    """Return the absolute path of what lies in a folder; any other name, such as that of a task, as it is."""
    lies_there = not is_task(name) and lies_in(folder, name)
    return str(folder / name) if looks_like_file(name) or lies_there else name


def lies_in(folder: Path, name: str) -> bool:
    """Tell whether there is something of a name, of any length, in a folder."""
    return bool(name) and os.path.exists(f"{folder}/{name}")  # noqa: PTH110 - a Path fails where a name is too long


def file_and_array(text: str) -> tuple[str, str]:
    """Return the two parts of `FILE.npz:ARRAY`; of any other name of a file, all of it and nothing."""
    file, _, array = text.rpartition(":")
    return (file, array) if file.lower().endswith(".npz") else (text, "")


def is_task(name: str) -> bool:
    """Tell whether a name is that of a task of the suite."""
    return canonical(name) in map(canonical, task_names())


def command_set(text: str) -> EvaluationConfig:
    """Return the evaluation set that a text of the command line means, with its files found from this folder."""
    given, here = read_evaluation(text), Path.cwd()
    return replace(given, images=located(given.images, here), file=located(given.file, here))


def read_tables(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"expected at most {MOST_BYTES:,} bytes of text, got {path.stat().st_size:,}")
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    except RecursionError:
        raise too_deep(str(path)) from None
    check_levels(tables, str(path))
    return tables


def check_levels(tables: Any, where: str) -> None:
    """Raise an error if tables are nested too deeply. Work level by level, as recursion would fail on them."""
    level = [tables]
    for _ in range(MOST_LEVELS):
        level = [inner for value in level for inner in inner_values(value)]
    if level:
        raise too_deep(where)


def inner_values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def too_deep(where: str) -> UserError:
    return UserError(f"{where}: expected at most {MOST_LEVELS} tables or lists within each other, got more")


def merge(base: dict[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in top.items():
        if isinstance(value, Mapping) and not isinstance(merged.get(key, {}), Mapping):
            raise UserError(f"'{key}' is a value, not a table of {', '.join(value)}")
        merged[key] = merge(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged


def parse_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """Return overrides such as `optimizer.lr=0.05` as tables. The values stay text until the field's type is known."""
    changes: dict[str, Any] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise UserError(f"--set {shown(override)}: expected KEY=VALUE, e.g. --set optimizer.lr=0.05")
        nested: Any = value.strip()
        for part in reversed(parts):
            nested = {part: nested}
        check_levels(nested, "--set")
        changes = merge(changes, nested)
    return changes
