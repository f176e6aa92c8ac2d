"""Task files: where they lie, what they extend, and what a command line changes in them."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.config import OWN_IMAGES, TaskConfig
from benchmark.errors import UserError
from benchmark.limits import shown
from benchmark.names import match_name
from benchmark.schema import build

CONFIG_DIR = Path(__file__).resolve().parent.parent / "configs"
MOST_BYTES = 1_000_000
MOST_PARENTS = 20
MOST_LEVELS = 10
"""Of tables within tables; a task has three."""


def task_names() -> list[str]:
    return sorted(path.stem for path in CONFIG_DIR.glob("*.toml"))


def load_task(name: str, overrides: Iterable[str] = (), defaults: Mapping[str, Any] | None = None) -> TaskConfig:
    """The task called `name`, or described by the TOML file at that path, with `key=value` overrides.

    `defaults` are what the machine suggests where the task says nothing.
    """
    path = task_path(name)
    tables = extended({**(defaults or {}), **read_task(path, ())}, changes_of(overrides))
    check_levels(tables, name)
    place_data(tables, Path.cwd())
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
    if len(seen) > MOST_PARENTS:
        raise UserError(f"{seen[0].name}: more than {MOST_PARENTS} files extend each other; two or three should do")
    tables = read_tables(path)
    place_data(tables, path.parent)
    parent = tables.pop("extends", None)
    if parent is None:
        return tables
    if not isinstance(parent, str):
        raise UserError(f"{path.name}: extends: expected the name of a task, got {shown(parent)}")
    beside = path.parent / f"{parent}.toml"
    return extended(read_task(beside if beside.is_file() else task_path(parent), (*seen, path)), tables)


def extended(base: dict[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` on top of `base`, without what `base` says of another network or of other images than a user's own."""
    kept = dict(base)
    if renamed(base, top, "network", "name"):
        del kept["network"]
    if renamed(base, top, "data", "source") in OWN_IMAGES:
        kept["data"] = {name: value for name, value in base["data"].items() if name not in ("mean", "std")}
        kept.pop("augment", None)
    return merge(kept, top)


def renamed(base: Mapping[str, Any], top: Mapping[str, Any], table: str, field: str) -> str | None:
    """The name that `top` gives where `base` has another."""
    old, new = (tables[table].get(field) if isinstance(tables.get(table), Mapping) else None for tables in (base, top))
    return None if new is None or old is None or new == old else str(new)


def place_data(tables: dict[str, Any], folder: Path) -> None:
    """A path to data is meant from where it is written: a job may run elsewhere."""
    data = tables.get("data")
    if isinstance(data, dict) and isinstance(data.get("path"), str) and data["path"]:
        data["path"] = str(folder / data["path"])


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
    """Level by level: what is nested too deeply cannot be walked through by functions that call themselves."""
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


def changes_of(overrides: Iterable[str]) -> dict[str, Any]:
    """`optimizer.lr=0.05` as tables; numbers, true/false and lists with commas are read by the field's type."""
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
