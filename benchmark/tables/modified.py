"""Describe the settings of runs that differ from their task file. Without this, a table would hide what made it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from benchmark.config.ingredient_names import ALL
from benchmark.config.load import load_task, task_names
from benchmark.config.recipe import recipe_differences, recipe_of
from benchmark.store.manifest import Manifest
from benchmark.store.store import Store
from benchmark.tables.columns import Column, abbreviate, load_columns, split_by_coverage
from benchmark.tables.model import Sheet, Table

CHOICES = {each.field for each in ALL}
"""Fields by which ingredients are chosen."""
OF_INGREDIENTS = re.compile(
    r"\b(averaging\.|mixing\.|schedule\.hold_|optimizer\.(rho|sigma|smoothing|statistics)\b|network\.cosine_scale)"
)
"""What else is set of them."""
Shown = TypeVar("Shown", bound=Table | Sheet)


def open_table(manifest: Manifest, store: Store) -> tuple[Manifest, list[Column]]:
    """Return the columns of a manifest, and the manifest with a text on what was modified."""
    columns = load_columns(manifest, store)
    lines = modified_lines(manifest, columns)
    constants = [line for line in lines if OF_INGREDIENTS.search(line)]
    others = [line for line in lines if line not in constants]
    sentences = [f"Modified: {'; '.join(others)}."] if others else []
    sentences += [f"Ingredients: {'; '.join(constants)}."] if constants else []
    title = f"{manifest.title} (modified)" if others else manifest.title
    return replace(manifest, title=title, modified=" ".join(sentences)), columns


def modified_lines(manifest: Manifest, columns: Sequence[Column]) -> list[str]:
    """Return a text for each value that differs from the task file; it starts with the columns that have it, if few.

    Which ingredients a run has is no difference: its label says so.
    """
    begun = [column for column in split_by_coverage(columns) if column.records or column.diverged]
    trained = [column for column in begun if column.published and not column.is_oracle and not is_imported(column)]
    task, standard = manifest.task, manifest.standard
    if not standard and task in task_names():  # older manifests do not keep the recipe
        standard = recipe_of(load_task(task))
    names_by_line: dict[str, list[str]] = {}
    for column in trained:
        for line in dict.fromkeys(recipe_lines(standard or {}, manifest, column)):
            names_by_line.setdefault(line, []).append(column.name)
    shared = [line for line, names in names_by_line.items() if len(names) == len(trained)]
    apart = [f"{abbreviate(names)}: {line}" for line, names in names_by_line.items() if len(names) < len(trained)]
    own = [f"{column.name}: {line}" for column in trained for line in map(change_text, column.modified.items())]
    return [*shared, *apart, *own]


def is_imported(column: Column) -> bool:
    """Tell whether its runs were made elsewhere: no task file says how."""
    return any(record.is_imported for record in column.records)


def recipe_lines(standard: Mapping[str, Any], manifest: Manifest, column: Column) -> Iterator[str]:
    """Yield a text on each setting in which a run of the column differs from the standard recipe."""
    for record in (*column.records, *column.diverged) if standard else ():
        used = record.identity
        if manifest.standard is None:  # older manifests do not say that the device chose this; no task file has it
            standard = {**standard, "channels_last": used.get("channels_last", False)}
        changes = recipe_differences(standard, used)
        yield from (change_text(change) for change in changes.items() if change[0] not in CHOICES)


def change_text(change: tuple[str, Sequence[Any]]) -> str:
    name, (old, new) = change
    return f"{name} = {value_text(new)} (task file: {value_text(old)})"


def value_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def with_note(shown: Sequence[Shown], text: str) -> list[Shown]:
    """Add the note on what was modified, if anything was, to tables and sheets."""
    return [replace(each, notes=(*each.notes, text), modified=text) for each in shown] if text else list(shown)
