"""Describe the settings of runs that differ from their task file. Without this, a table would hide what made it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from benchmark.config.load import load_task, task_names
from benchmark.config.recipe import recipe_differences, recipe_of
from benchmark.store.store import Store
from benchmark.tables.build import with_defaults
from benchmark.tables.columns import Column, abbreviate, load_columns, split_by_coverage
from benchmark.tables.model import Sheet, Table

Shown = TypeVar("Shown", bound=Table | Sheet)


def open_table(manifest: dict[str, Any], store: Store) -> tuple[dict[str, Any], list[Column]]:
    """Return the columns of a manifest, and the manifest with every setting and a text on what was modified."""
    manifest = with_defaults(manifest)
    columns = load_columns(manifest, store)
    text = modified_text(manifest, columns)
    title = f"{manifest['title']} (modified)" if text else manifest["title"]
    return {**manifest, "title": title, "modified": text}, columns


def modified_text(manifest: dict[str, Any], columns: Sequence[Column]) -> str:
    """Return a sentence with the used values and those of the task file; empty where nothing differs.

    A difference that only some columns have starts with their names.
    """
    begun = [column for column in split_by_coverage(columns) if column.records or column.diverged]
    trained = [column for column in begun if column.published and not column.is_oracle]
    standard = manifest.get("standard") or shipped_recipe(manifest["task"])
    names_by_line: dict[str, list[str]] = {}
    for column in trained:
        for line in dict.fromkeys(recipe_lines(standard, manifest, column)):
            names_by_line.setdefault(line, []).append(column.name)
    shared = [line for line, names in names_by_line.items() if len(names) == len(trained)]
    apart = [f"{abbreviate(names)}: {line}" for line, names in names_by_line.items() if len(names) < len(trained)]
    own = [f"{column.name}: {line}" for column in trained for line in map(change_text, column.modified.items())]
    return f"Modified: {'; '.join([*shared, *apart, *own])}." if names_by_line or own else ""


def recipe_lines(standard: dict[str, Any], manifest: dict[str, Any], column: Column) -> Iterator[str]:
    for record in (*column.records, *column.diverged) if standard else ():
        used = record.get("identity", {})
        yield from map(change_text, recipe_differences(standard | device_defaults(manifest, used), used).items())


def change_text(change: tuple[str, Sequence[Any]]) -> str:
    name, (old, new) = change
    return f"{name} = {value_text(new)} (task file: {value_text(old)})"


def shipped_recipe(task: str) -> dict[str, Any]:
    """Return the recipe of the suite's task file, for older manifests, which do not keep it."""
    return recipe_of(load_task(task)) if task in task_names() else {}


def device_defaults(manifest: dict[str, Any], used: dict[str, Any]) -> dict[str, Any]:
    """Return settings that the device chose: no task file has them, and older manifests do not say who set them."""
    return {} if "standard" in manifest else {"channels_last": used.get("channels_last", False)}


def value_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def with_note(shown: Sequence[Shown], manifest: dict[str, Any]) -> list[Shown]:
    """Add the note on what was modified to tables and sheets."""
    text = manifest["modified"]
    return [replace(each, notes=(*each.notes, text), modified=text) for each in shown] if text else list(shown)
